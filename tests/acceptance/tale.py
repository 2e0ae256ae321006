"""Stories as data: reads the line format that `data/the_ninth_bell.tale` explains at its top, and tells them to a story."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import talekeeper as tk
from talekeeper.memory.moments import AdventureMoment, moment_mark

DATA = Path(__file__).with_name("data")

_HEAD = re.compile(
    r"(?P<who>\w+)(?: \((?P<voice>[^)]+)\))?(?: #(?P<label>[\w-]+))?(?: \^(?P<cites>[\w-]+))?(?: -> (?P<to>\w+(?:, \w+)*))?(?P<thought> ~)?"
    r": (?P<text>.+)"
)
_MOVE = re.compile(r"(?P<way>[<>]) (?P<who>\w+(?:, \w+)*)(?: @ (?P<place>[^:]+))?: (?P<text>.+)")
_DEED = re.compile(r"!(?P<what>undo|edit|pin) #(?P<label>[\w-]+)(?:: (?P<text>.+))?")
_MARK = re.compile(r"\+ (?:moment (?P<type>\w+) (?P<significance>[\d.]+)|world (?P<kind>\w+)): (?P<summary>.+)")


@dataclass(frozen=True)
class Beat:
    """One line of a story. `do` is what to do with it: tell, enter, leave, session, or something of the author's: undo, edit, pin."""

    do: str
    who: tuple[str, ...]
    text: str
    place: str | None = None
    kind: str = "said"
    voice: str | None = None
    to: tuple[str, ...] | None = None
    label: str = ""
    cites: str = ""
    marks: tuple[tk.Mark, ...] = ()


def read_tale(name: str) -> list[Beat]:
    """The beats of a story in `data`."""
    beats: list[Beat] = []
    place: str | None = None
    for number, (text, marks) in enumerate(_blocks((DATA / f"{name}.tale").read_text(encoding="utf-8"))):
        if text.startswith("-- "):
            place = text[3:]
            continue
        beat = _beat(text, place, tuple(_mark(mark) for mark in marks))
        assert beat is not None, f"block {number} of {name} is no beat: {text!r}"
        beats.append(beat)
    return beats


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each line with the lines that go on with it, and the marks under it."""
    words: list[str] = []
    marks: list[str] = []
    for line in text.splitlines():
        if line.startswith("  + "):
            marks.append(line.strip())
        elif line.startswith("  "):
            words.append(line.strip())
        elif line and (line[0] != "#" or line.startswith("## ")):
            if words:
                yield " ".join(words), marks
            words, marks = [line], []
    yield " ".join(words), marks


def _mark(line: str) -> tk.Mark:
    found = _MARK.fullmatch(line)
    assert found is not None, f"no mark: {line!r}"
    if found["kind"]:
        return tk.Mark("world event", {"kind": found["kind"], "summary": found["summary"]})
    return moment_mark(AdventureMoment(0, found["type"], found["summary"], float(found["significance"])))


def _beat(text: str, place: str | None, marks: tuple[tk.Mark, ...]) -> Beat | None:
    if text.startswith("## "):
        return Beat("session", (), text[3:])
    if text.startswith("* "):
        return Beat("tell", ("",), text[2:], place, "event", marks=marks)
    if (found := _MOVE.fullmatch(text)) is not None:
        do = "enter" if found["way"] == ">" else "leave"
        return Beat(do, tuple(found["who"].split(", ")), found["text"], found["place"], marks=marks)
    if (found := _DEED.fullmatch(text)) is not None:
        return Beat(found["what"], (), found["text"] or "", label=found["label"])
    if (found := _HEAD.fullmatch(text)) is None:
        return None
    who, to = found["who"], tuple(found["to"].split(", ")) if found["to"] else None
    kind = "note" if who == "note" else "thought" if found["thought"] else "whisper" if to and not found["cites"] else "said"
    return Beat(
        "tell", ("" if kind == "note" else who,), found["text"], place if who == "dm" else None, kind, found["voice"], to,
        found["label"] or "", found["cites"] or "", marks,
    )  # fmt: skip


class Teller:
    """Tells beats to a story. `told` counts those that stand: what is undone does not."""

    def __init__(self, story: tk.Story) -> None:
        self.story = story
        self.undone: set[str] = set()
        """The names of turns that were taken back or written anew."""
        self.told = 0
        self.labels: dict[str, tuple[str, int, int]] = {}  # the turn's id, the entry before it, and how many beats stood then

    async def tell(self, beat: Beat) -> None:
        """One beat on."""
        if beat.do in ("undo", "edit", "pin"):
            await self._deed(beat)
            return
        before = self.story.head
        turn = await self._turn(beat)
        if beat.label:
            assert turn is not None
            self.labels[beat.label] = (turn.id, before, self.told)
        self.told += 1

    async def _deed(self, beat: Beat) -> None:
        turn, before, told = self.labels[beat.label]
        if beat.do != "pin":
            self.undone.add(beat.label)
        if beat.do == "undo":
            await self.story.rewind(to=before)
            self.told = told
        elif beat.do == "edit":
            await self.story.edit(turn, beat.text)
        else:
            await self.story.pin(turn)

    async def _turn(self, beat: Beat) -> tk.Turn | None:
        story = self.story
        if beat.do == "session":
            return await story.begin_session(beat.text)
        if beat.do in ("enter", "leave"):
            return await self._move(beat)
        if beat.cites:
            return await story.reveal(self.labels[beat.cites][0], beat.to or (), text=beat.text, speaker=beat.who[0])
        return await story.append(
            beat.who[0], beat.text, heard_by=beat.to, location=beat.place, kind=beat.kind, voice=beat.voice, marks=beat.marks,  # type: ignore[arg-type]
        )  # fmt: skip

    async def _move(self, beat: Beat) -> tk.Turn | None:
        """Moves the seats one after the other; the beat's text comes with the last, so that all of them hear it. Who is there already is
        told to come, too: the golden files are of a log that has that line."""
        names = {seat.id: seat.label for seat in self.story.seats}
        for seat in beat.who[:-1]:
            await self._go(seat, beat.place, beat.place and f"{names[seat]} comes to {beat.place}.")
        return await self._go(beat.who[-1], beat.place, beat.text)

    async def _go(self, seat: str, place: str | None, text: str | None) -> tk.Turn | None:
        return await (self.story.leave(seat, text=text) if place is None else self.story.enter(seat, place, text=text))
