"""Two processes on one file who change one story at the same moment: who comes second builds on what is there then, or is told so."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import talekeeper as tk
from talekeeper.doctor import examine, examine_file
from talekeeper.live.hot import Hot
from talekeeper.memory.parts import remember
from talekeeper.ports import Commit, Found, Head, Message, Read
from talekeeper.story.marking import store_gathered
from talekeeper.testing.models import MoodyModel

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper

KEY = tk.MemoryKey("acme", "ana", "race")
SEATS = (tk.Seat("dm", role="dm", token_limit=200), tk.Seat("a", token_limit=150))
MOMENT = {"type": "discovery", "summary": "A door.", "significance": 0.5}
Call = Callable[[tk.Story], Awaitable[Any]]


class Two(NamedTuple):
    """One story in two keepers on one file, and a turn, a mark, a fold and a pinned turn of it that both know."""

    one: tk.Story
    other: tk.Story
    turn: tk.Turn
    mark: tk.Marked
    fold: tk.Fold
    pinned: tk.Turn

    async def race(self, second: Call, first: Call) -> Any:
        """What `second` gives to the other one, where `first` is done by the one just before the other's first write arrives."""
        store = self.other._keeper.store
        write = store.write

        async def late(commit: Commit) -> int:
            store.write = write  # type: ignore[method-assign]
            await first(self.one)
            return await write(commit)

        store.write = late  # type: ignore[method-assign]
        try:
            return await second(self.other)
        finally:
            assert store.write is not late, "nothing was written: there was no race"

    async def lines(self) -> int:
        """How many lines are stored, also those on which nothing was told."""
        record = await self.one._keeper.store.load(KEY)
        assert record is not None
        return len(record.branches)

    async def look(self) -> Any:
        """All that there is, in the order of the log, on every branch; each of them can be read."""
        branches = await self.one.branches()
        lines = [await self.one.switch(branch.name) for branch in branches]
        kinds = tk.model.HEARD_KINDS | tk.model.AUTHOR_KINDS
        contexts = [(await line.context(seat, budget=budget)).text for line in lines for seat in ("dm", "a") for budget in (150, 900)]
        return branches, [await line.turns(kinds=kinds) for line in lines], contexts


@pytest.fixture
async def two(open_file: OpenKeeper) -> AsyncIterator[Two]:
    one, other = await open_file(), await open_file()
    story = await one.story(KEY, seats=SEATS)
    for number in range(59):
        await story.append("dm", f"Turn {number} tells of Mira and the {number} crowns at the gate of the mill.")
    mark = await story.mark("moment", MOMENT, of=[50])
    pinned = await story.pin(49)
    pair = Two(story, await other.story(KEY), await story.turn(50), mark, (await story.folds("dm"))[-1], pinned)
    yield pair
    for keeper in (one, other):
        assert await examine(keeper, KEY) == []


def rewind(story: tk.Story) -> Awaitable[Any]:
    return story.rewind(5)


def append(story: tk.Story) -> Awaitable[Any]:
    return story.append("a", "I draw my sword.")


def lost_races() -> dict[str, tuple[Call, Callable[[Two], Call], type[tk.TalekeeperError]]]:
    """What the one does first, what the other wanted meanwhile, and what it is told."""

    def marks(turn: tk.Turn) -> list[tk.Mark]:
        return [tk.Mark("moment", MOMENT, of=(turn,))]

    return {
        "rewind behind a rewind": (rewind, lambda t: lambda s: s.rewind(15), tk.UnknownTurn),
        "rewind to a turn that is gone": (rewind, lambda t: lambda s: s.rewind(t.turn), tk.UnknownTurn),
        "fork from what was undone": (rewind, lambda t: lambda s: s.fork(at=15, name="f"), tk.UnknownTurn),
        "regenerate what was undone": (rewind, lambda t: lambda s: s.regenerate("Again."), tk.Conflict),
        "regenerate what is no longer the newest": (append, lambda t: lambda s: s.regenerate("Again."), tk.Conflict),
        "regenerate twice": (lambda s: s.regenerate("One."), lambda t: lambda s: s.regenerate("Two."), tk.Conflict),
        "edit by number": (rewind, lambda t: lambda s: s.edit(50, "Edited."), tk.UnknownTurn),
        "edit by id": (rewind, lambda t: lambda s: s.edit(t.turn.id, "Edited."), tk.UnknownTurn),
        "edit what was forgotten": (lambda s: s.forget(50), lambda t: lambda s: s.edit(t.turn, "Edited."), tk.UnknownTurn),
        "pin": (rewind, lambda t: lambda s: s.pin(t.turn), tk.UnknownTurn),
        "unpin": (rewind, lambda t: lambda s: s.unpin(t.pinned), tk.UnknownTurn),
        "override": (rewind, lambda t: lambda s: s.override(t.fold.id, "Mine."), tk.UnknownFold),
        "mark": (rewind, lambda t: lambda s: s.mark("moment", MOMENT, of=[50]), tk.UnknownTurn),
        "mark what was forgotten": (lambda s: s.forget(50), lambda t: lambda s: s.mark("moment", MOMENT, of=[50]), tk.UnknownTurn),
        "mark many": (rewind, lambda t: lambda s: s.mark_many(marks(t.turn)), tk.UnknownTurn),
        "drop a mark": (rewind, lambda t: lambda s: s.mark("moment", MOMENT, of=[3], drops=[t.mark.id]), tk.InvalidInput),
        "append with a mark": (rewind, lambda t: lambda s: s.append("dm", "So.", marks=marks(t.turn)), tk.UnknownTurn),
        "append with a mark and an id": (
            rewind, lambda t: lambda s: s.append("dm", "So.", id="mine", marks=marks(t.turn)), tk.UnknownTurn,
        ),
        "reveal": (rewind, lambda t: lambda s: s.reveal(50, ["a"]), tk.UnknownTurn),
        "reveal what was forgotten": (lambda s: s.forget(50), lambda t: lambda s: s.reveal(t.turn, ["a"]), tk.UnknownTurn),
        "two forks of one name": (lambda s: s.fork(name="x"), lambda t: lambda s: s.fork(name="x"), tk.InvalidInput),
        "rewind what was expected otherwise": (
            append, lambda t: lambda s: s.rewind(5, expected_version=s.version), tk.Conflict,
        ),
    }  # fmt: skip


LOST = lost_races()


@pytest.mark.parametrize("name", LOST)
async def test_what_can_no_longer_be_meant_is_refused_and_changes_nothing(two: Two, name: str) -> None:
    first, wanted, error = LOST[name]
    before: Any = None

    async def and_look(story: tk.Story) -> None:
        nonlocal before
        await first(story)
        before = await two.look()

    with pytest.raises(error):
        await two.race(wanted(two), and_look)
    assert await two.look() == before


async def test_a_fold_that_someone_else_wrote_over_is_no_longer_there(two: Two) -> None:
    with pytest.raises(tk.UnknownFold):
        await two.race(lambda s: s.override(two.fold.id, "Mine."), lambda s: s.override(two.fold.id, "Theirs."))
    assert "Theirs." in [fold.text for fold in await two.other.folds("dm")]


async def test_a_number_means_the_turn_that_had_it_when_it_was_said(two: Two) -> None:
    async def another_fifty(story: tk.Story) -> None:
        await story.rewind(5)
        await story.append_many([tk.Draft("dm", f"Another way, {number}.") for number in range(60)])

    calls: list[Call] = [lambda s: s.edit(50, "Edited."), lambda s: s.rewind(50), lambda s: s.mark("moment", MOMENT, of=[50])]
    for call in calls:
        with pytest.raises(tk.UnknownTurn):
            await two.race(call, another_fifty)
    assert len(await two.one.turns()) == 65


async def test_who_comes_second_builds_on_what_is_there(two: Two) -> None:
    head = two.one.head
    assert (await two.race(lambda s: s.append("dm", "Second."), append)).seq == head + 2
    assert await two.race(lambda s: s.rewind(5), append) == 5
    assert await two.race(lambda s: s.rewind(4), lambda s: s.rewind(5)) == 4
    lines = await two.lines()
    assert await two.race(lambda s: s.rewind(3), lambda s: s.rewind(3)) == 3
    assert await two.lines() == lines + 1, "both went to the same place"
    assert (await two.race(lambda s: s.edit(2, "Edited."), append)).text == "Edited."
    assert (await two.race(lambda s: s.pin(2), append)).id == (await two.one.turn(2)).id
    forks = await two.race(lambda s: s.fork(), lambda s: s.fork())
    assert (forks.branch, forks.head) == ("fork-2", two.one.head)
    edited = await two.race(lambda s: s.edit(2, "Once more."), lambda s: s.edit(2, "Twice."))
    assert edited == await two.one.turn(2)
    assert await two.race(lambda s: s.forget(2), rewind_to_the_first) is None
    assert "Once more." not in str([await line.turns() for line in [await two.one.switch(b.name) for b in await two.one.branches()]])


async def rewind_to_the_first(story: tk.Story) -> None:
    await story.rewind(1)


async def test_what_has_an_id_is_told_once_whoever_tells_it(two: Two) -> None:
    calls: dict[str, Call] = {
        "append": lambda s: s.append("dm", "Once.", id="append"),
        "enter": lambda s: s.enter("a", "inn", id="enter"),
        "leave": lambda s: s.leave("a", id="leave"),
        "session": lambda s: s.begin_session(id="session"),
        "note": lambda s: s.note("Lore.", id="note"),
        "reveal": lambda s: s.reveal(50, ["a"], id="reveal"),
        "regenerate": lambda s: s.regenerate("Told anew.", id="regenerate"),
    }
    for name, call in calls.items():
        first: list[tk.Turn] = []

        async def do(story: tk.Story, call: Call = call, first: list[tk.Turn] = first) -> None:
            first.append(await call(story))

        second = await two.race(call, do)
        assert (second.id, second.text, second.seq) == (name, first[0].text, first[0].seq)
        assert [turn.id for turn in await two.one.turns()].count(name) == 1


async def test_of_two_who_adopt_one_line_the_second_is_told_that_it_has_gone(two: Two) -> None:
    await two.one.rewind(5)
    with pytest.raises(tk.UnknownBranch):
        await two.race(lambda s: s.adopt("main~1"), lambda s: s.adopt("main~1"))
    await two.one.fork(name="x")

    async def give_the_name_away(story: tk.Story) -> None:
        await story.adopt("x")
        await story.fork(name="x", at=2)

    with pytest.raises(tk.Conflict):
        await two.race(lambda s: s.adopt("x"), give_the_name_away)


async def test_a_fork_that_adopts_main_gets_what_was_told_there_meanwhile(two: Two) -> None:
    fork = await two.other.fork(at=9, name="elsewhere")
    head = await two.race(lambda s: fork.adopt("main"), append)
    assert (await fork.turns())[-1].text == "I draw my sword."
    assert await fork.turns() == await two.one.turns()
    assert fork.head == two.one.head == head


async def test_what_others_write_about_a_turn_while_it_is_forgotten_is_forgotten_with_it(two: Two, tmp_path: Path) -> None:
    async def tell_of_it(story: tk.Story) -> None:
        await story.edit(50, "The password is xyzzyplugh.")
        await story.mark("moment", {**MOMENT, "summary": "xyzzyplugh!"}, of=[50])
        await story.append_many([tk.Draft("dm", f"And on it goes, {number}.") for number in range(300)])
        await story._hot.checkpoint()

    await two.race(lambda s: s.forget(50), tell_of_it)
    for keeper in (two.one._keeper, two.other._keeper):
        await keeper.close()
    assert all(b"xyzzyplugh" not in path.read_bytes() for path in tmp_path.glob("stories.db*"))
    for story in (two.one, two.other):
        await story._keeper.__aenter__()


@pytest.mark.parametrize("here", [True, False])
async def test_a_model_that_answers_late_brings_back_nothing_that_was_forgotten(open_file: OpenKeeper, tmp_path: Path, here: bool) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def model(messages: Sequence[Message]) -> str:
        if "xyzzyplugh" not in messages[-1]["content"]:
            return "Mira counted the crowns at the gate of the mill [1]."
        asked.set()
        await answer.wait()
        return "Mira told of xyzzyplugh at the gate of the mill [1]."

    one, other = await open_file(summarizer=model), await open_file()
    story = await one.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=200)])
    told = "Turn {} tells of Mira and the crowns at the gate of the mill, and of much else beside that nobody counts."
    await story.append_many([tk.Draft("dm", told.format(n) + " The word is xyzzyplugh." * (n == 3)) for n in range(60)])
    settled = asyncio.create_task(story.settle())
    await asked.wait()
    await (story if here else await other.story(KEY)).forget(4)
    answer.set()
    await settled
    assert {fold.made_by for fold in await story.folds("dm")} == {"model"}
    for keeper in (one, other):
        await keeper.close()
    assert all(b"xyzzyplugh" not in path.read_bytes() for path in tmp_path.glob("stories.db*"))


async def test_a_branch_that_another_process_made_can_be_switched_to(two: Two) -> None:
    made = await two.one.fork(at=7, name="elsewhere")
    assert (await two.other.switch("elsewhere")).head == made.head == 7
    with pytest.raises(tk.UnknownBranch):
        await two.other.switch("nowhere")


async def test_a_name_that_was_given_away_and_taken_again_is_found_by_the_other(two: Two) -> None:
    await two.one.fork(at=9, name="x")
    line = await two.other.switch("x")
    await two.one.adopt("x")
    await two.other.turns()  # it learns that the name is gone
    with pytest.raises(tk.UnknownBranch):
        await line.turns()
    again = await two.one.fork(at=5, name="x")
    assert await line.turns() == await (await two.other.switch("x")).turns() == await again.turns()


async def test_a_branch_writes_only_where_its_name_stands_now(two: Two) -> None:
    """All branches in a process share one record: what one of them has learnt must not vouch for the others."""
    fork = await two.other.fork(at=9, name="elsewhere")
    for again in range(3):
        await two.one.rewind(5 + again)
        await fork.turns()
        await two.other.append("dm", "On the line that goes on.")
        assert (await two.one.turns())[-1].text == "On the line that goes on."
    await two.other.adopt("elsewhere")
    with pytest.raises(tk.UnknownBranch):
        await fork.append("dm", "On a line that bears another name by now.")
    assert await two.one.turns() == await two.other.turns()


# -- what is forgotten while someone stores folds that were made from it ------------------------------------------------


async def written_over(two: Two) -> tk.Story:
    """A branch of the one whose next larger fold will have the author's words in it, and whose state is stored."""
    first = (await two.one.folds("dm"))[0]
    chunk = await two.one.override(first.id, "The author tells of the crowns himself.")
    assert chunk.level == 0
    branch = await two.one.fork(name="elsewhere")
    for story in (two.one, branch):
        await story.context("dm", budget=400)
        await story._hot.checkpoint()
    return branch


async def close_a_larger_fold(story: tk.Story) -> None:
    for number in range(12):
        await story.append("dm", f"More of it, {number}: the mill, the gate, the river.")
    await story._hot.checkpoint()


async def test_what_another_branch_stores_while_a_turn_is_being_forgotten_has_nothing_of_it(two: Two) -> None:
    elsewhere, store = await written_over(two), two.one._keeper.store
    write, head, written = store.write, store.head, False

    async def noted(commit: Commit) -> int:
        nonlocal written
        rev = await write(commit)
        written = written or commit.erase is not None
        return rev

    async def late(story: int, branch: int) -> Head:
        if written:  # it is gone from the file, and the branch of whoever did it is about to take that in
            store.write, store.head = write, head  # type: ignore[method-assign]
            await close_a_larger_fold(elsewhere)
        return await head(story, branch)

    store.write, store.head = noted, late  # type: ignore[method-assign]
    await two.one.forget(1)
    assert store.head == head, "there was no race"


async def test_what_another_process_stores_just_before_a_turn_is_forgotten_has_nothing_of_it_afterwards(two: Two) -> None:
    branch = await two.other.switch((await written_over(two)).branch)
    await branch.context("dm", budget=400)
    store, write = two.one._keeper.store, two.one._keeper.store.write

    async def late(commit: Commit) -> int:
        if commit.erase is not None:
            store.write = write  # type: ignore[method-assign]
            await close_a_larger_fold(branch)
        return await write(commit)

    store.write = late  # type: ignore[method-assign]
    await two.one.forget(1)
    assert store.write == write, "there was no race"


class Words:
    """The words that were heard. A `Gathering`."""

    name = "words.1"

    def read(self, turns: Sequence[tk.Turn]) -> list[str]:
        return sorted({word for turn in turns for word in turn.text.split()})

    def merge(self, parts: Sequence[list[str]]) -> list[str]:
        return sorted({word for part in parts for word in part})


async def gather(story: tk.Story) -> None:
    await story.gather("dm", Words())
    await store_gathered(story._hot)


@pytest.mark.parametrize("which", ["the same branch", "another branch", "another process"])
@pytest.mark.parametrize("just", ["before", "after", "while it is taken in"])
async def test_what_was_gathered_over_a_turn_that_is_being_forgotten_does_not_come_back(
    two: Two, tmp_path: Path, which: str, just: str
) -> None:
    await two.one.edit(50, "The password is xyzzyplugh.")
    at_it = two.other if which == "another process" else two.one if which == "the same branch" else await two.one.fork()
    for each in (two.one, at_it):
        await each._hot.refresh()
        await each._hot.checkpoint()
    await at_it.gather("dm", Words())  # and it is at it just when the turn is forgotten
    assert "xyzzyplugh" in str(at_it._hot.state.shelf.gathered)
    store = two.one._keeper.store
    write, head = store.write, store.head

    async def late(commit: Commit) -> int:
        if commit.erase is None:
            return await write(commit)
        store.write = write  # type: ignore[method-assign]
        if just == "before":
            await store_gathered(at_it._hot)
        rev = await write(commit)
        if just == "after":
            await store_gathered(at_it._hot)
        elif just == "while it is taken in":
            store.head = later  # type: ignore[method-assign]
        return rev

    async def later(story: int, branch: int) -> Head:
        store.head = head  # type: ignore[method-assign]
        await store_gathered(at_it._hot)
        return await head(story, branch)

    store.write = late  # type: ignore[method-assign]
    await two.one.forget(50)
    assert (store.write, store.head) == (write, head), "there was no race"
    for each in (at_it, two.one, two.other):
        await gather(each)
        words = await each.gather("dm", Words())
        assert "xyzzyplugh." not in words
    for keeper in (two.one._keeper, two.other._keeper):
        await keeper.close()
    assert all(b"xyzzyplugh" not in path.read_bytes() for path in tmp_path.glob("stories.db*"))
    for keeper in (two.one._keeper, two.other._keeper):
        await keeper.__aenter__()


async def test_what_was_read_before_a_turn_was_forgotten_and_comes_after_it_is_not_gathered(two: Two, tmp_path: Path) -> None:
    """The other is reading the turn while the one forgets it, and has taken that in before it gets what it was reading."""
    secret = await two.one.append("dm", "The password is xyzzyplugh.")
    await close_a_larger_fold(two.one)
    keeper = two.other._keeper
    await keeper.close()
    await keeper.__aenter__()
    story = await keeper.story(KEY)
    store, read = keeper.store, keeper.store.read

    async def slow(request: Read) -> Found:
        found = await read(request)
        if any("xyzzyplugh" in entry.text for entry in found.entries):
            store.read = read  # type: ignore[method-assign]
            await two.one.forget(secret)
            await story._hot.refresh()
        return found

    store.read = slow  # type: ignore[method-assign]
    assert "xyzzyplugh." not in await story.gather("dm", Words())
    assert store.read == read, "there was no race"
    await store_gathered(story._hot)
    for each in (two.one._keeper, keeper):
        await each.close()
    assert all(b"xyzzyplugh" not in path.read_bytes() for path in tmp_path.glob("stories.db*"))
    for each in (two.one._keeper, keeper):
        await each.__aenter__()


# -- as fast as they can -------------------------------------------------------------------------------------------------


async def play(story: tk.Story, name: str, dice: random.Random, steps: int) -> int:
    """Does whatever comes to mind to a story and to branches of it; returns how often it worked."""
    done = 0
    for step in range(steps):
        try:
            await act(story, f"{name}-{step}", dice)
            done += 1
            if dice.random() < 0.1:
                story = await story.switch(dice.choice([branch.name for branch in await story.branches()][-4:]))
        except tk.UnknownBranch:  # someone else has adopted it
            story = await story.switch("main")
        except (tk.InvalidInput, tk.Conflict, tk.BudgetTooSmall):
            pass
    return done


async def act(story: tk.Story, name: str, dice: random.Random) -> None:
    head = max(1, story.head)
    turn = dice.randint(1, head)
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: story.append("dm", f"{name} tells of the crowns of Mira."),
        lambda: story.append("a", f"{name} draws a sword.", id=name),
        lambda: story.append_many([tk.Draft("dm", f"{name} goes on, {n}: the mill, the gate, the river.") for n in range(12)]),
        lambda: story.rewind(dice.randint(max(0, head - 6), head)),
        lambda: story.fork(at=turn if dice.random() < 0.5 else None, name=dice.choice([None, f"way-{dice.randint(1, 9)}"])),
        lambda: story.regenerate(f"{name} tells it anew."),
        lambda: story.edit(turn, f"{name} edits."),
        lambda: story.pin(turn) if dice.random() < 0.5 else story.unpin(turn),
        lambda: story.mark("moment", MOMENT, of=[turn]),
        lambda: override(story, dice, f"{name} sums it up."),
        lambda: story.forget(turn),
        lambda: story.reveal(turn, ["a"]),
        lambda: story.enter("a", dice.choice(["inn", "mill"])),
        lambda: adopt(story, dice),
        lambda: story.context(dice.choice(["dm", "a"]), budget=dice.choice([80, 400])),
        lambda: gather(story),
    ]
    await dice.choice(calls)()


async def override(story: tk.Story, dice: random.Random, text: str) -> None:
    folds = await story.folds("dm")
    if folds:
        await story.override(dice.choice(folds).id, text)


async def adopt(story: tk.Story, dice: random.Random) -> None:
    await story.adopt(dice.choice([branch.name for branch in await story.branches()]))


@pytest.mark.parametrize("seed", range(2))
async def test_two_who_do_whatever_they_like_at_once_leave_a_file_in_order(open_file: OpenKeeper, tmp_path: Path, seed: int) -> None:
    one, other = await open_file(), await open_file()
    story = await one.story(KEY, seats=SEATS)
    await story.append_many(
        [tk.Draft("dm", f"Turn {number} tells of Mira and the crowns at the gate of the mill.") for number in range(40)]
    )
    players = [(story, "Ana"), (await other.story(KEY), "Bo"), (story, "Cy"), (await other.story(KEY), "Di")]
    done = await asyncio.gather(*(play(each, name, random.Random(f"{seed} {name}"), 60) for each, name in players))
    assert min(done) > 10
    for keeper in (one, other):
        await keeper.close()
    assert examine_file(tmp_path / "stories.db") == []
    keeper = await open_file()
    assert await examine(keeper, KEY) == []
    for branch in await (await keeper.story(KEY)).branches():
        line = await keeper.story(KEY, branch=branch.name)
        assert len(await line.turns()) <= line.head == branch.head
        assert (await line.context("a", budget=300)).tokens <= 300
        assert await line.gather("dm", Words()) == Words().read(await line.turns(seat="dm"))


async def test_a_fold_is_made_though_the_log_moves_while_its_text_is_stored(open_file: OpenKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    good, moved = MoodyModel(), [0]
    replay = Hot._replay

    async def late(hot: Hot, head: int) -> None:
        if moved == [1] and hot is story._hot:
            moved[0] += 1
            raise tk.Conflict("the log moved while it was read; try again")
        await replay(hot, head)

    async def model(messages: Sequence[Message]) -> str:
        if not moved[0]:
            moved[0] = 1
            await elsewhere.append("a", "Someone else is faster.")
        return await good(messages)

    monkeypatch.setattr(Hot, "_replay", late)
    keeper = await open_file(summarizer=model)
    elsewhere = await (await open_file()).story(KEY, seats=SEATS)
    story = await keeper.story(KEY)
    await story.append_many(
        [tk.Draft("a", f"On day {n} the caravan crosses another empty valley, with no word of the guide.") for n in range(60)]
    )
    await story.settle()
    assert moved == [2]
    assert await keeper._residents.folder(story._hot).pending(given_up=True) == []


async def test_what_is_told_at_the_moment_when_someone_joins_is_in_their_brief(open_file: OpenKeeper) -> None:
    keeper, elsewhere = await open_file(), await open_file()
    story = await elsewhere.story(KEY, seats=SEATS)
    await story.append("a", "Before it.")
    await keeper.story(KEY)
    write = keeper.store.write

    async def late(commit: Commit) -> int:
        keeper.store.write = write  # type: ignore[method-assign]
        await story.append("a", "At the same moment.")
        return await write(commit)

    keeper.store.write = late  # type: ignore[method-assign]
    joined = await keeper.story(KEY, seats=[tk.Seat("c")])
    await joined.append("a", "After it.")
    brief = (await joined.brief("c")).text
    assert [words in brief for words in ("Before it.", "At the same moment.", "After it.")] == [True] * 3


DEEDS = (
    "Captain Voss counts the silver coins on the table twice and says that nobody leaves before the third bell",
    "the old ferryman swears that the bridge will not hold another winter, whatever the duke has promised them",
    "Mira hides the brass key under the loose stone behind the altar and tells nobody about the second door",
    "rain comes down from the hills and the road to the mill is gone until somebody clears the fallen trees",
)


async def test_how_a_model_is_doing_is_stored_also_where_someone_else_changes_the_story_meanwhile(open_file: OpenKeeper) -> None:
    asked = 0

    async def model(messages: Sequence[Message]) -> str:
        nonlocal asked
        asked += 1
        await yours.fork()
        raise ConnectionError("gone")

    one, other = await open_file(summarizer=model, retry=tk.RetryPolicy(attempts=1, recover_after=3600)), await open_file()
    mine, yours = await one.story(KEY, seats=SEATS), await other.story(KEY, seats=SEATS)
    await mine.append_many([tk.Draft("dm", f"mark{n}x: {DEEDS[n % 4]}.") for n in range(60)])
    await mine.settle()
    assert asked
    assert (await mine.health()).state is tk.HealthState.DEGRADED
    await one.close()
    record = await other.store.load(KEY)
    assert record is not None
    assert (record.health["state"], record.health["reason"]) == ("degraded", "the model failed: ConnectionError: gone")
    assert (record.spending.calls, record.spending.failures) == (asked, asked)


async def test_of_two_who_make_the_same_folds_at_once_one_is_kept_and_both_are_paid(open_file: OpenKeeper) -> None:
    good, asked = MoodyModel(), list[int]()

    async def model(messages: Sequence[Message]) -> str:
        asked.append(len(messages))
        await asyncio.sleep(random.random() / 100)
        return await good(messages)

    one, other = await open_file(summarizer=model), await open_file(summarizer=model)
    mine, yours = await one.story(KEY, seats=SEATS), await other.story(KEY, seats=SEATS)
    for number in range(0, 160, 16):
        await mine.append_many([tk.Draft("dm", f"mark{n}x: {DEEDS[n % 4]}.") for n in range(number, number + 16)])
        await asyncio.gather(mine.settle(), yours.settle())
    record = await one.store.load(KEY)
    assert record is not None
    texts = (await one.store.read(Read(record.id, all_folds=True))).texts
    assert len({(text.key, text.branch) for text in texts}) == len(texts) > 10
    assert len(asked) > len(texts), "both were at it"
    await mine.append("dm", "And on.")
    for seat in ("dm", "a"):
        assert (await mine.context(seat)).text == (await yours.context(seat)).text
        assert {fold.made_by for fold in await mine.folds(seat)} == {"model"}
    for story in (mine, yours):
        health = await story.health()
        assert (health.state, health.pending) == (tk.HealthState.HEALTHY, 0)
    assert (await mine.stats()).model_calls == len(asked)
    assert await examine(one, KEY) == []


@pytest.mark.parametrize("who", ["another branch", "another process"])
async def test_who_has_joined_is_known_wherever_the_story_is_open(open_file: OpenKeeper, who: str) -> None:
    keeper = await open_file()
    story = await keeper.story(KEY, seats=SEATS)
    turn = await story.append("a", "The bridge is down.")
    other = await story.fork() if who == "another branch" else story
    joining = keeper if who == "another branch" else await open_file()
    doings: list[Callable[[str], Awaitable[object]]] = [
        lambda seat: other.append(seat, "I am here."),
        lambda seat: other.append("a", "Welcome!", heard_by=[seat]),
        lambda seat: other.append("a", "It holds.", marks=[tk.Mark("hope", {"of": "a bridge"}, heard_by=(seat, "a"))], heard_by=[seat]),
        lambda seat: other.reveal(turn, to=[seat]),
        lambda seat: other.enter(seat, "the ford"),
        lambda seat: other.leave(seat),
        lambda seat: other.context(seat, budget=300),
        lambda seat: other.recall(seat, "bridge"),
        lambda seat: other.brief(seat),
        lambda seat: other.recap(seat),
        lambda seat: other.stretch(seat),
        lambda seat: other.turns(seat=seat),
        lambda seat: other.marks(seat, "hope"),
        lambda seat: other.topics(seat),
        lambda seat: other.ordinals(seat, [1]),
        lambda seat: other.folds(seat),
        lambda seat: remember(other, seat),
    ]
    for number, do in enumerate(doings):
        await joining.story(KEY, seats=[tk.Seat(f"late {number}")])
        await do(f"late {number}")
    with pytest.raises(tk.UnknownSeat):
        await other.append("nobody", "I was never seated.")
