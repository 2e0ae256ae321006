"""A person at a real terminal: the program runs under a pseudo-terminal, and keys are pressed."""

from __future__ import annotations

import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROMPT = "Nell Tarn > "
PATIENCE = 60.0


class Screen:
    """The program, what it has shown, and a keyboard for it."""

    def __init__(self, *args: str, term: str = "xterm") -> None:
        self._ours, theirs = pty.openpty()
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs
        environment = {**os.environ, "TERM": term, "COLUMNS": "100"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from talekeeper.cli import main; main()", *args],
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True, preexec_fn=self._take_terminal,
        )  # fmt: skip
        self.shown = ""

    def _take_terminal(self) -> None:
        """So that Ctrl-C reaches the program as it does in a shell."""
        import fcntl

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, text: str, *, after: int = 0) -> str:
        """Waits until the text is shown, behind what was shown before."""
        limit = time.monotonic() + PATIENCE
        while text not in self.shown[after:]:
            assert time.monotonic() < limit, f"{text!r} was never shown: {self.shown!r}"
            self._listen(limit)
        return self.shown

    def _listen(self, limit: float) -> bool:
        if not select.select([self._ours], [], [], max(0.0, min(0.2, limit - time.monotonic())))[0]:
            return True
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # the other side is gone
            return False
        self.shown += piece.decode(errors="replace")
        return bool(piece)

    def ends(self, within: float = PATIENCE) -> int:
        """The exit code, once it is over."""
        limit = time.monotonic() + within
        while self._process.poll() is None:
            assert time.monotonic() < limit, f"it does not end: {self.shown!r}"
            self._listen(limit)
        while select.select([self._ours], [], [], 0)[0] and self._listen(limit):
            pass
        return self._process.returncode

    @property
    def is_as_before(self) -> bool:
        return termios.tcgetattr(self._theirs)[3] == self.before[3]

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[..., Screen]]:
    opened: list[Screen] = []

    def begin(*args: str, term: str = "xterm") -> Screen:
        opened.append(Screen("play", "--file", str(tmp_path / "game.db"), *args, term=term))
        return opened[-1]

    yield begin
    for screen in opened:
        screen.close()


def test_ctrl_c_at_the_prompt_leaves_at_once_with_kind_words(play: Callable[..., Screen]) -> None:
    screen = play("--scenario", "tidelamp", "--seed", "5")
    screen.until(PROMPT)
    screen.press("I ask Mar")
    screen.press("\x03")
    assert screen.ends(within=20) == 130
    assert "Until next time. The story is kept in" in screen.shown
    assert "Traceback" not in screen.shown
    assert "error" not in screen.shown
    assert screen.is_as_before

    screen = play()
    screen.until(PROMPT)
    screen.press("\x04")
    assert screen.ends() == 0
    assert "Until next time. The story is kept in" in screen.shown


def test_ctrl_c_at_the_choice_of_an_adventure_leaves(play: Callable[..., Screen]) -> None:
    screen = play()
    screen.until("Which adventure [1]: ")
    screen.press("9\r")
    screen.until("choose 1 to 2")
    screen.press("\x03")
    assert screen.ends(within=20) == 130
    assert "Until next time." in screen.shown
    assert "Traceback" not in screen.shown


def test_ctrl_c_while_the_story_is_told_leaves_and_loses_nothing(play: Callable[..., Screen]) -> None:
    screen = play("--scenario", "tidelamp", "--auto", "--rounds", "400")
    screen.until("Marlo")
    screen.press("\x03")
    assert screen.ends(within=20) == 130
    assert "Until next time. The story is kept in" in screen.shown
    assert "Traceback" not in screen.shown
    assert play("--auto", "--rounds", "1").ends() == 0


@pytest.mark.enable_socket
def test_ctrl_c_while_a_model_thinks_leaves(play: Callable[..., Screen]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes the request, and never answers
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        screen = play("--scenario", "tidelamp", "--model", "openai:slow", "--base-url", address)
        screen.until("the game master thinks")
        silent.settimeout(PATIENCE)
        with silent.accept()[0]:
            screen.press("\x03")
            assert screen.ends(within=20) == 130
    assert "Until next time. The story is kept in" in screen.shown
    assert "Traceback" not in screen.shown


def test_a_terminal_that_can_do_nothing_is_sent_nothing_but_text(play: Callable[..., Screen]) -> None:
    screen = play("--scenario", "tidelamp", "--seed", "5", term="dumb")
    screen.until(PROMPT)
    screen.press("I ask Marlo about the job.\r")
    screen.until(PROMPT, after=screen.until("Marlo Finch").rindex(PROMPT) + len(PROMPT))
    screen.press("\x04")
    assert screen.ends() == 0
    assert "\x1b" not in screen.shown


def test_arrow_keys_bring_the_last_line_back(play: Callable[..., Screen]) -> None:
    screen = play("--scenario", "tidelamp", "--seed", "5")
    screen.until(PROMPT)
    screen.press("/save\r")
    screen.until("after every round")
    screen.until(PROMPT, after=screen.shown.index("after every round"))
    seen = len(screen.shown)
    screen.press("\x1b[A\r")
    screen.until(PROMPT, after=screen.until("after every round", after=seen).rindex("after every round"))
    screen.press("\x04")
    assert screen.ends() == 0


def test_what_the_table_says_is_wrapped_at_words_like_the_story(play: Callable[..., Screen]) -> None:
    screen = play("--scenario", "tidelamp", "--seed", "5", term="dumb")
    for line, said in (
        ("I ask Marlo about the job and whisper to Osric that he lies.", "One secret at a time: "), ("/peek", "you look behind the screen: "),
        ("/nudge rain", "the built-in storyteller begins"), ("/knows " + "somebody " * 12, "nobody here is called"),
    ):  # fmt: skip
        before = len(screen.until(PROMPT, after=screen.shown.rfind("\n") + 1))
        screen.press(f"{line}\r")
        screen.until(PROMPT, after=screen.until(said, after=before).index(said, before))
        told = screen.shown[before:].partition(said)[2].rpartition(PROMPT)[0]
        assert max(len(row) for row in f"{said}{told}".splitlines()) <= 100, told
        assert "\n" in told.strip() or line == "/nudge rain", told
