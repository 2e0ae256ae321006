"""The lock of a story: had at once where it is free, in the order of coming where it is not, and never lost with someone who gave up."""

from __future__ import annotations

import asyncio

from talekeeper.live.turnstile import Turnstile


async def test_it_is_had_at_once_where_it_is_free_and_by_one_only() -> None:
    lock = Turnstile()
    assert lock.free()
    assert not lock.free()
    lock.release()
    assert lock.free()


async def test_those_who_wait_get_it_in_the_order_in_which_they_came() -> None:
    lock, order = Turnstile(), list[int]()

    async def visit(number: int) -> None:
        async with lock:
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(visit(number) for number in range(20)))
    assert order == list(range(20))
    assert lock.free()


async def test_nobody_who_comes_later_is_first() -> None:
    lock = Turnstile()
    assert lock.free()
    waiting = asyncio.create_task(lock.turn())
    await asyncio.sleep(0)
    lock.release()
    assert not lock.free(), "it belongs to the one who waited, who has not run yet"
    await waiting
    lock.release()
    assert lock.free()


async def test_one_who_gives_up_while_waiting_is_passed_over() -> None:
    lock = Turnstile()
    assert lock.free()
    first, second = asyncio.create_task(lock.turn()), asyncio.create_task(lock.turn())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    lock.release()
    await asyncio.wait_for(second, 1)
    assert first.cancelled()
    lock.release()
    assert lock.free()


async def test_one_who_gives_up_just_when_it_was_given_to_them_passes_it_on() -> None:
    lock = Turnstile()
    assert lock.free()
    first, second = asyncio.create_task(lock.turn()), asyncio.create_task(lock.turn())
    await asyncio.sleep(0)
    lock.release()
    first.cancel()
    await asyncio.wait_for(second, 1)
    assert first.cancelled()
    lock.release()
    assert lock.free()


async def test_one_who_gives_up_in_the_same_moment_in_which_it_is_released_is_passed_over() -> None:
    lock = Turnstile()
    assert lock.free()
    first, second = asyncio.create_task(lock.turn()), asyncio.create_task(lock.turn())
    await asyncio.sleep(0)
    first.cancel()
    lock.release()
    results = await asyncio.wait_for(asyncio.gather(first, second, return_exceptions=True), 1)
    assert [type(result) for result in results] == [asyncio.CancelledError, type(None)]
    lock.release()
    assert lock.free()


async def test_one_who_is_dropped_while_waiting_is_passed_over() -> None:
    lock = Turnstile()
    assert lock.free()
    dropped = lock.turn()
    dropped.send(None)
    dropped.close()
    lock.release()
    assert lock.free()


async def test_it_is_released_where_the_work_fails() -> None:
    lock = Turnstile()
    try:
        async with lock:
            raise ValueError
    except ValueError:
        pass
    assert lock.free()
