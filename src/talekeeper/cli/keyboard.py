"""The person at the terminal: lines are read on the main thread, and the game runs beside it.

Ctrl-C arrives on the main thread, and line editing leaves the terminal as it was only there. So the one who waits for the person must be
that thread, and the event loop has another: models go on summarising while somebody thinks, and Ctrl-C ends the game wherever it is.
"""

from __future__ import annotations

import asyncio
import io
import signal
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from socket import socket, socketpair
from threading import Event, Thread, current_thread, get_ident, main_thread
from typing import Any, TypeVar

import click

from talekeeper.cli.screen import safe, use_colour

T = TypeVar("T")


class Quit(Exception):
    """The person leaves the table."""


class Keyboard:
    """Where a person's lines come from, for work that runs in an event loop."""

    def __init__(self) -> None:
        self._wanted: SimpleQueue[tuple[str, Future[str]] | None] = SimpleQueue()

    async def line(self, prompt: str) -> str:
        """The next line that is typed. Raises `Quit` at the end of the input."""
        typed: Future[str] = Future()
        self._wanted.put((prompt, typed))
        return await asyncio.wrap_future(typed)

    def attend(self, work: Coroutine[Any, Any, T]) -> T:
        """Lets the work run, and reads for it. Ctrl-C cancels the work, waits until it has cleaned up, and is raised again.

        What is not UTF-8 comes as lone surrogates, which nothing that is kept takes: one line is refused, and not all that follow it."""
        reconfigure = getattr(sys.stdin, "reconfigure", None)
        if reconfigure is not None:
            with suppress(io.UnsupportedOperation):  # something was read already
                reconfigure(errors="surrogateescape")
        done: Future[T] = Future()
        stop: Future[Callable[[], object]] = Future()

        async def watched() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            stop.set_result(lambda: loop.call_soon_threadsafe(task.cancel) if task is not None else None)
            return await work

        def beside() -> None:
            try:
                done.set_result(asyncio.run(watched()))
            except BaseException as exc:  # it is raised again by whoever asks for the result
                done.set_exception(exc)
            finally:
                self._wanted.put(None)

        thread = Thread(target=beside, name="talekeeper-game", daemon=True)
        thread.start()
        try:
            with _Bell():
                while (wanted := self._wanted.get()) is not None:
                    _answer(*wanted)
        except KeyboardInterrupt:
            with suppress(RuntimeError):  # it has ended by itself in this moment
                stop.result()()
            thread.join()
            raise
        return done.result()


class _Bell:
    """Sees to it that Ctrl-C is heard, also by a line editor that is busy with another key.

    The editor looks for it only while it waits for a key, so it is pressed once more until it is heard. And it must not take the keys
    before it with it, for which the editor would then wait."""

    def __init__(self) -> None:
        self._heard, self._again = Event(), False
        self._rung: socket | None = None
        self._fd, self._keeps = -1, False

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or current_thread() is not main_thread():
            return  # someone else decides about it
        if not hasattr(signal, "pthread_kill"):
            return
        rings, self._rung = socketpair()
        self._rung.setblocking(False)
        self._fd = signal.set_wakeup_fd(self._rung.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, self._hear)
        self._keeps = _keep_keys(True)
        Thread(target=self._watch, args=(get_ident(), rings), name="talekeeper-bell", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        if self._rung is None:
            return
        if self._keeps:
            _keep_keys(False)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(self._fd)
        self._heard.set()
        self._rung.close()

    def _hear(self, *_: object) -> None:
        if self._heard.is_set() and self._again:
            self._again = False
            return
        self._heard.set()
        raise KeyboardInterrupt

    def _watch(self, ident: int, rings: socket) -> None:
        with rings:
            while signals := rings.recv(64):
                while signal.SIGINT in signals and not self._heard.wait(0.1):
                    self._again = True
                    signal.pthread_kill(ident, signal.SIGINT)


def _keep_keys(keep: bool) -> bool:
    """Has the terminal keep what was typed before Ctrl-C, or drop that, as it usually does. Returns whether anything has changed."""
    try:
        import termios
    except ImportError:  # no such terminal
        return False
    try:
        settings = termios.tcgetattr(sys.stdin)
        if bool(settings[3] & termios.NOFLSH) is keep:
            return False
        settings[3] ^= termios.NOFLSH
        termios.tcsetattr(sys.stdin, termios.TCSANOW if keep else termios.TCSAFLUSH, settings)
    except (OSError, ValueError, termios.error):
        return False
    return True


def _answer(prompt: str, typed: Future[str]) -> None:
    try:
        typed.set_result(_read(prompt))
    except EOFError:
        click.echo("")
        typed.set_exception(Quit())
    except UnicodeDecodeError as exc:
        typed.set_exception(click.ClickException(f"what was typed is not UTF-8 text: {exc.reason} at byte {exc.start}"))
    except KeyboardInterrupt:
        click.echo("")
        raise


def _read(prompt: str) -> str:
    if not sys.stdin.isatty():
        line = input(prompt)
        click.echo(safe(line))  # nobody has seen it being typed
        return line
    return input(_bold(prompt) if _editing() and use_colour() else prompt)


def _editing() -> bool:
    """Arrow keys and a history of lines, where Python has them."""
    with suppress(ImportError):
        import readline  # noqa: F401

        return True
    return False


def _bold(prompt: str) -> str:
    """The prompt in bold, with its codes marked as taking no room: the editor counts columns."""
    return f"\x01\x1b[1m\x02{prompt}\x01\x1b[0m\x02"
