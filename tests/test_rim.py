"""What cannot mean anything is refused with an error of our own, and the story is as it was. On every store."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import talekeeper as tk
from talekeeper import memory, rim
from talekeeper.memory import callbacks

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = (tk.Seat("dm", role="dm"), tk.Seat("rogue"), tk.Seat("bard"), tk.Seat("a"), tk.Seat("b"))
LIMIT = 100 * 1024
HUGE = 10**400
LONG = "x" * (2 * LIMIT)


async def look(story: tk.Story) -> Any:
    """All of a story that a refused call could have changed."""
    return (
        story.version, story.head, await story.turns(), await story.turns(kinds=["edit", "pin", "unpin", "override"]), story.presence(),
        [await story.context(seat, budget=budget, query="gate") for seat in ("rogue", "a") for budget in (150, 2000)],
        await story.branches(), await story.stats(), story.seats,
    )  # fmt: skip


async def begin(keeper: tk.Keeper) -> tk.Story:
    story = await keeper.story(KEY, seats=SEATS)
    await story.enter("rogue", "tavern")
    await story.append_many(
        [tk.Draft("dm", f"Turn {number}: the gate is shut.", heard_by=["rogue", "bard"], id=f"own-{number}") for number in range(30)]
    )
    for _ in range(3):
        await story.append("dm", "Only a and b.", heard_by=["a", "b"])
    await story.append("dm", "As usual.")
    await story.pin(5)
    return story


@pytest.fixture
async def story(keeper: tk.Keeper) -> tk.Story:
    return await begin(keeper)


@pytest.fixture
async def quick_story() -> AsyncIterator[tk.Story]:
    """In memory only, for what is refused long before any store hears of it."""
    async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: 0.0) as keeper:
        yield await begin(keeper)


Call = Callable[[tk.Story], Awaitable[Any]]
BAD_TEXTS: dict[str, tuple[Any, type[tk.TalekeeperError], str]] = {
    "None": (None, tk.WrongType, "text must be a string, not NoneType"),
    "bytes": (b"bytes", tk.WrongType, "not bytes"),
    "number": (7, tk.WrongType, "not int"),
    "list": (["a"], tk.WrongType, "not list"),
    "empty": ("", tk.InvalidInput, "blank"),
    "spaces": (" \t\n ", tk.InvalidInput, "blank"),
    "unicode blanks": ("\u2003\u3000", tk.InvalidInput, "blank"),
    "nothing to be seen": ("\u200b\ufeff \x1b\xad\u2060\ufe0f\u3164\u200d\U000e0001", tk.InvalidInput, "blank"),
    "escape": ("\x1b", tk.InvalidInput, "blank"),
    "too long": ("x" * (LIMIT + 1), tk.InvalidInput, "102401 bytes"),
    "too long in bytes": ("漢" * (LIMIT // 3 + 1), tk.InvalidInput, "100 KB"),
    "lone surrogate": ("half \ud83d a smile", tk.InvalidInput, "lone surrogate at character 5"),
    "nul": ("a\0b", tk.InvalidInput, "NUL byte at character 1"),
}


@pytest.mark.parametrize("text", ["!", "~", " .", "\u200b\u2764\ufe0f", "é", "\x1b[", "\ue000", "\U0001fae8", "\u0301", "\U0010fffd", "漢"])
def test_one_sign_that_can_be_seen_is_enough(text: str) -> None:
    assert rim.text(text) == text


def ways_in(text: Any) -> dict[str, Call]:
    """All ways by which a text gets into a story."""
    ways: dict[str, Call] = {
        "append": lambda story: story.append("dm", text),
        "append_many": lambda story: story.append_many([tk.Draft("dm", "Fine."), tk.Draft("dm", text)]),
        "note": lambda story: story.note(text),
        "edit": lambda story: story.edit(3, text),
        "regenerate": lambda story: story.regenerate(text),
        "override": lambda story: story.override("any fold", text),
    }
    if text is not None:  # there None asks for the usual words
        ways |= {
            "session": lambda story: story.begin_session(text),
            "enter": lambda story: story.enter("bard", "crypt", text=text),
            "leave": lambda story: story.leave("rogue", text=text),
            "reveal": lambda story: story.reveal(2, to=["a"], text=text),
        }
    return ways


@pytest.mark.parametrize("name", BAD_TEXTS)
async def test_a_text_that_cannot_be_stored_is_refused_wherever_it_comes_in(story: tk.Story, name: str) -> None:
    text, error, message = BAD_TEXTS[name]
    before = await look(story)
    for way, call in ways_in(text).items():
        with pytest.raises(error, match=message) as raised:
            await call(story)
        assert isinstance(raised.value, ValueError), way
        assert isinstance(raised.value, TypeError) == (error is tk.WrongType), way
    assert await look(story) == before


@pytest.mark.parametrize("text", ["x" * LIMIT, "漢" * (LIMIT // 3), "🙂" * (LIMIT // 4)], ids=["ascii", "three bytes", "four bytes"])
async def test_exactly_100_kb_is_accepted_and_kept_whole(story: tk.Story, text: str) -> None:
    turn = await story.append("dm", text)
    assert (await story.turn(turn.id)).text == text
    assert (await story.context("dm", budget=500)).tokens <= 500


@pytest.mark.parametrize(
    "text", ["a\x01b", "tab\there", "\ufeffmark", "e\u0301", "🏴‍☠️", "\u202eoverride", "a\r\nb", "'; DROP TABLE entries; --", "%s {x} \\"]
)
async def test_odd_but_valid_text_is_kept_as_it_is(story: tk.Story, text: str) -> None:
    turn = await story.append("dm", text)
    assert (await story.turn(turn.id)).text == text


async def watched(story: tk.Story, watcher: Any) -> None:
    story.watch(watcher)


def bad_calls() -> dict[str, tuple[Call, type[tk.TalekeeperError], str | None]]:
    any_: Any = None
    bard: Any = "ab"
    bad: dict[str, tuple[Call, type[tk.TalekeeperError], str | None]] = {
        "unknown speaker": (lambda s: s.append("rouge", "Hi."), tk.UnknownSeat, "did you mean 'rogue'"),
        "no such speaker at all": (lambda s: s.append("zzz", "Hi."), tk.UnknownSeat, "there are: a, b, bard, dm, rogue"),
        "empty speaker": (lambda s: s.append("", "Hi."), tk.UnknownSeat, "no seat ''"),
        "speaker None": (lambda s: s.append(any_, "Hi."), tk.WrongType, "NoneType"),
        "speaker of an event": (lambda s: s.append("rouge", "Hi.", kind="event"), tk.UnknownSeat, "rogue"),
        "speaker None of an event": (lambda s: s.append(any_, "Hi.", kind="event"), tk.WrongType, "NoneType"),
        "speaker 0 of a note": (lambda s: s.append(0, "Hi.", kind="note"), tk.WrongType, "int"),  # type: ignore[arg-type]
        "unknown hearer": (lambda s: s.append("dm", "Hi.", heard_by=["bardd"]), tk.UnknownSeat, "did you mean 'bard'"),
        "hearers as one string": (lambda s: s.append("dm", "Hi.", heard_by="bard"), tk.WrongType, "list"),
        "hearers as one string of seats": (lambda s: s.append("dm", "Hi.", heard_by="ab"), tk.WrongType, "list"),
        "hearers as a number": (lambda s: s.append("dm", "Hi.", heard_by=5), tk.WrongType, "heard_by"),  # type: ignore[arg-type]
        "hearer None": (lambda s: s.append("dm", "Hi.", heard_by=[None]), tk.WrongType, "NoneType"),  # type: ignore[list-item]
        "hearer unhashable": (lambda s: s.append("dm", "Hi.", heard_by=[["bard"]]), tk.WrongType, "list"),  # type: ignore[list-item]
        "whisper to no one named": (lambda s: s.append("dm", "Hi.", kind="whisper"), tk.InvalidInput, "heard_by"),
        "unknown kind": (lambda s: s.append("dm", "Hi.", kind="shout"), tk.InvalidInput, "said"),  # type: ignore[arg-type]
        "author's kind": (lambda s: s.append("dm", "Hi.", kind="edit"), tk.InvalidInput, "said"),  # type: ignore[arg-type]
        "kind None": (lambda s: s.append("dm", "Hi.", kind=any_), tk.InvalidInput, "kind"),
        "kind unhashable": (lambda s: s.append("dm", "Hi.", kind=["said"]), tk.InvalidInput, "kind"),  # type: ignore[arg-type]
        "blank location": (lambda s: s.append("dm", "Hi.", location=" "), tk.InvalidInput, "location"),
        "location with a line break": (lambda s: s.append("dm", "Hi.", location="a\nb"), tk.InvalidInput, "printed"),
        "location as a number": (lambda s: s.append("dm", "Hi.", location=3), tk.WrongType, "location"),  # type: ignore[arg-type]
        "location unhashable": (lambda s: s.append("dm", "Hi.", location=["x"]), tk.WrongType, "location"),  # type: ignore[arg-type]
        "location too long": (lambda s: s.append("dm", "Hi.", location="x" * 201), tk.InvalidInput, "201"),
        "voice with a line break": (lambda s: s.append("dm", "Hi.", voice="a\u2028b"), tk.InvalidInput, "printed"),
        "voice as a number": (lambda s: s.append("dm", "Hi.", voice=3), tk.WrongType, "voice"),  # type: ignore[arg-type]
        "voice empty": (lambda s: s.append("dm", "Hi.", voice=""), tk.InvalidInput, "voice"),
        "when as a number": (lambda s: s.append("dm", "Hi.", when=3), tk.WrongType, "when"),  # type: ignore[arg-type]
        "when with a surrogate": (lambda s: s.append("dm", "Hi.", when="\udc00"), tk.InvalidInput, "surrogate"),
        "mentions as one string": (lambda s: s.append("dm", "Hi.", mentions="key"), tk.WrongType, "mentions"),
        "mention None": (lambda s: s.append("dm", "Hi.", mentions=[None]), tk.WrongType, "mentions"),  # type: ignore[list-item]
        "cites nothing that is there": (lambda s: s.append("dm", "Hi.", cites=["nowhere"]), tk.UnknownTurn, "nowhere"),
        "cites as one string": (lambda s: s.append("dm", "Hi.", cites="own-1"), tk.WrongType, "cites"),
        "id empty": (lambda s: s.append("dm", "Hi.", id=""), tk.InvalidInput, "id"),
        "id as a number": (lambda s: s.append("dm", "Hi.", id=5), tk.WrongType, "id"),  # type: ignore[arg-type]
        "id with nul": (lambda s: s.append("dm", "Hi.", id="a\0"), tk.InvalidInput, "NUL"),
        "id like a generated one": (lambda s: s.append("dm", "Hi.", id="t-0123456789abcdef"), tk.InvalidInput, "generated"),
        "id of another turn": (lambda s: s.append("dm", "Hi.", id="own-3"), tk.DuplicateId, "own-3"),
        "old version": (lambda s: s.append("dm", "Hi.", expected_version="1.1"), tk.Conflict, "1.1"),
        "version as a number": (lambda s: s.append("dm", "Hi.", expected_version=5), tk.TalekeeperError, None),  # type: ignore[arg-type]
        "drafts None": (lambda s: s.append_many(any_), tk.WrongType, None),
        "drafts of strings": (lambda s: s.append_many(["Hi."]), tk.WrongType, None),  # type: ignore[list-item]
        "a draft alone": (lambda s: s.append_many(tk.Draft("dm", "Hi.")), tk.WrongType, None),  # type: ignore[arg-type]
        "enter of no one": (lambda s: s.enter("nobody", "crypt"), tk.UnknownSeat, "nobody"),
        "enter nowhere": (lambda s: s.enter("bard", ""), tk.InvalidInput, "location"),
        "enter None": (lambda s: s.enter("bard", any_), tk.WrongType, "location"),
        "leave of no one": (lambda s: s.leave("nobody"), tk.UnknownSeat, "nobody"),
        "reveal an unknown turn": (lambda s: s.reveal(999, to=["a"]), tk.UnknownTurn, "999"),
        "reveal to no one": (lambda s: s.reveal(2, to=["nobody"]), tk.UnknownSeat, "nobody"),
        "reveal to one string": (lambda s: s.reveal(2, to="ab"), tk.WrongType, "list"),
        "context of no one": (lambda s: s.context("rouge"), tk.UnknownSeat, "did you mean 'rogue'"),
        "context of None": (lambda s: s.context(any_), tk.WrongType, "NoneType"),
        "context of the common view": (lambda s: s.context("*"), tk.UnknownSeat, "'\\*'"),
        "negative budget": (lambda s: s.context("rogue", budget=-1), tk.InvalidInput, "at least 0"),
        "budget True": (lambda s: s.context("rogue", budget=True), tk.WrongType, "bool"),
        "budget 1.5": (lambda s: s.context("rogue", budget=1.5), tk.WrongType, "float"),  # type: ignore[arg-type]
        "budget as text": (lambda s: s.context("rogue", budget="100"), tk.WrongType, "str"),  # type: ignore[arg-type]
        "query as a number": (lambda s: s.context("rogue", budget=100, query=5), tk.WrongType, "query"),  # type: ignore[arg-type]
        "query too long": (lambda s: s.recall("rogue", "x " * LIMIT), tk.InvalidInput, "query has .*ask in fewer words"),
        "query None": (lambda s: s.recall("rogue", any_), tk.WrongType, "query"),
        "negative limit": (lambda s: s.recall("rogue", "gate", limit=-1), tk.InvalidInput, "limit"),
        "limit True": (lambda s: s.recall("rogue", "gate", limit=True), tk.WrongType, "limit"),
        "recall of no one": (lambda s: s.recall("nobody", "gate"), tk.UnknownSeat, "nobody"),
        "brief of no one": (lambda s: s.brief("nobody"), tk.UnknownSeat, "nobody"),
        "brief negative": (lambda s: s.brief("rogue", budget=-5), tk.InvalidInput, "budget"),
        "extras of an unknown part": (lambda s: s.context("rogue", extras={"x": []}), tk.InvalidInput, "'x'"),
        "extras of strings": (lambda s: s.context("rogue", extras={"facts": ["no note"]}), tk.WrongType, None),  # type: ignore[list-item]
        "extras as a list": (lambda s: s.context("rogue", extras=["facts"]), tk.WrongType, None),  # type: ignore[arg-type]
        "recipe as a dict": (lambda s: s.context("rogue", recipe={}), tk.WrongType, None),  # type: ignore[arg-type]
        "turns of no one": (lambda s: s.turns(seat="nobody"), tk.UnknownSeat, "nobody"),
        "turns of unknown kinds": (lambda s: s.turns(kinds=["shout"]), tk.InvalidInput, "said"),
        "turns of one kind as a string": (lambda s: s.turns(kinds="said"), tk.InvalidInput, "list"),
        "turns after a negative number": (lambda s: s.turns(after=-1), tk.InvalidInput, "after"),
        "turns after text": (lambda s: s.turns(after="3"), tk.WrongType, "after"),  # type: ignore[arg-type]
        "turns with a negative limit": (lambda s: s.turns(limit=-1), tk.InvalidInput, "limit"),
        "turns before a negative number": (lambda s: s.turns(before=-1), tk.InvalidInput, "before"),
        "turn 0": (lambda s: s.turn(0), tk.UnknownTurn, "number 0"),
        "turn -1": (lambda s: s.turn(-1), tk.UnknownTurn, "number -1"),
        "turn too far": (lambda s: s.turn(10**9), tk.UnknownTurn, "goes from 1 to"),
        "turn of an unknown id": (lambda s: s.turn("t-0123456789abcdef"), tk.UnknownTurn, "t-0123456789abcdef"),
        "turn of an odd id": (lambda s: s.turn("no such id"), tk.UnknownTurn, "no such id"),
        "turn None": (lambda s: s.turn(any_), tk.WrongType, "NoneType"),
        "turn True": (lambda s: s.turn(True), tk.WrongType, "bool"),
        "turn 1.0": (lambda s: s.turn(1.0), tk.WrongType, "float"),  # type: ignore[arg-type]
        "turn that is a pin": (lambda s: s.turn(s.head), tk.UnknownTurn, "no turn that anyone heard"),
        "edit an unknown turn": (lambda s: s.edit(999, "New."), tk.UnknownTurn, "999"),
        "edit a pin": (lambda s: s.edit(s.head, "New."), tk.UnknownTurn, "heard"),
        "pin an unknown turn": (lambda s: s.pin("nope"), tk.UnknownTurn, "nope"),
        "unpin an unknown turn": (lambda s: s.unpin(999), tk.UnknownTurn, "999"),
        "forget an unknown turn": (lambda s: s.forget("nope"), tk.UnknownTurn, "nope"),
        "forget None": (lambda s: s.forget(any_), tk.WrongType, "NoneType"),
        "forget a pin": (lambda s: s.forget(s.head), tk.UnknownTurn, "heard"),
        "fold unknown": (lambda s: s.fold("0123456789abcdef01234567"), tk.UnknownFold, "0123456789abcdef01234567"),
        "fold None": (lambda s: s.fold(any_), tk.WrongType, "NoneType"),
        "override an unknown fold": (lambda s: s.override("nope", "Text."), tk.UnknownFold, "nope"),
        "override None": (lambda s: s.override(any_, "Text."), tk.WrongType, "NoneType"),
        "folds of no one": (lambda s: s.folds("nobody"), tk.UnknownSeat, "nobody"),
        "folds with a negative budget": (lambda s: s.folds("rogue", budget=-1), tk.InvalidInput, "budget"),
        "sources of an unknown fold": (lambda s: s.sources("nope"), tk.UnknownFold, "nope"),
        "sources of a number": (lambda s: s.sources(5), tk.WrongType, "int"),  # type: ignore[arg-type]
        "rewind too far": (lambda s: s.rewind(999), tk.UnknownTurn, "from 0 to"),
        "rewind to -1": (lambda s: s.rewind(-1), tk.UnknownTurn, "-1"),
        "rewind to True": (lambda s: s.rewind(True), tk.WrongType, "bool"),
        "rewind to False": (lambda s: s.rewind(False), tk.WrongType, "bool"),
        "rewind to None": (lambda s: s.rewind(any_), tk.WrongType, "NoneType"),
        "rewind to an unknown id": (lambda s: s.rewind("nope"), tk.UnknownTurn, "nope"),
        "fork too far": (lambda s: s.fork(at=999), tk.UnknownTurn, "999"),
        "fork with a blank name": (lambda s: s.fork(name=" "), tk.InvalidInput, "name"),
        "fork with a name that is taken": (lambda s: s.fork(name="main"), tk.InvalidInput, "main"),
        "fork named by a number": (lambda s: s.fork(name=5), tk.WrongType, "name"),  # type: ignore[arg-type]
        "switch to an unknown branch": (lambda s: s.switch("nope"), tk.UnknownBranch, "main"),
        "switch to None": (lambda s: s.switch(any_), tk.InvalidInput, None),
        "switch to a list": (lambda s: s.switch([]), tk.WrongType, "branch"),  # type: ignore[arg-type]
        "adopt a list": (lambda s: s.adopt([]), tk.WrongType, "branch"),  # type: ignore[arg-type]
        "a story on a list": (lambda s: s._keeper.story(KEY, branch=[]), tk.WrongType, "branch"),  # type: ignore[arg-type]
        "reveal to None": (lambda s: s.reveal(2, any_), tk.WrongType, "to must be a list"),
        "reveal to a number": (lambda s: s.reveal(2, 5), tk.WrongType, "to must be a list"),  # type: ignore[arg-type]
        "turns of a number of kinds": (lambda s: s.turns(kinds=5), tk.WrongType, "kinds"),  # type: ignore[arg-type]
        "turns of a list of lists": (lambda s: s.turns(kinds=[[]]), tk.InvalidInput, "kinds"),  # type: ignore[list-item]
        "mark of a number": (lambda s: s.mark("x", {}, of=5), tk.WrongType, "of"),  # type: ignore[arg-type]
        "mark of one turn": (lambda s: s.mark("x", {}, of="own-1"), tk.WrongType, "of"),
        "mark that drops a number": (lambda s: s.mark("x", {}, of=[2], drops=5), tk.WrongType, "drops"),  # type: ignore[arg-type]
        "mark heard by a number": (lambda s: s.mark("x", {}, heard_by=5), tk.WrongType, "heard_by"),  # type: ignore[arg-type]
        "mark heard by a string": (lambda s: s.mark("x", {}, heard_by="ab"), tk.WrongType, "heard_by"),
        "a mark of its own of a number": (lambda s: s.mark_many([tk.Mark("x", {}, of=any_)]), tk.WrongType, "of"),
        "a mark of its own heard by a string": (lambda s: s.mark_many([tk.Mark("x", {}, heard_by=bard)]), tk.WrongType, "heard_by"),
        "mark ranked by a word": (lambda s: s.mark("x", {}, of=[2], rank="high"), tk.WrongType, "rank must be a number, not str"),  # type: ignore[arg-type]
        "mark ranked by None": (lambda s: s.mark("x", {}, of=[2], rank=any_), tk.WrongType, "rank must be a number, not NoneType"),
        "a seat that folds at a word": (
            lambda s: s._keeper.story(KEY, seats=[tk.Seat("bard", fold_at=any_)]),
            tk.WrongType,
            "fold_at of seat 'bard'",
        ),
        "topics with a number": (lambda s: s.topics("dm", prefix=5.5), tk.WrongType, "prefix"),  # type: ignore[arg-type]
        "ordinals of a number": (lambda s: s.ordinals("dm", 5), tk.WrongType, "turns"),  # type: ignore[arg-type]
        "ordinals of ids": (lambda s: s.ordinals("dm", ["own-1"]), tk.WrongType, "number"),  # type: ignore[list-item]
        "ordinals of a turn to come": (lambda s: s.ordinals("dm", [1, 999]), tk.UnknownTurn, "no entry number 999 on branch 'main'"),
        "append to a version that is a number": (lambda s: s.append("dm", "x", expected_version=1.1), tk.WrongType, "expected_version"),  # type: ignore[arg-type]
        "append again to a version that is a number": (
            lambda s: s.append("dm", "I know you.", id="own-1", expected_version=1.1),  # type: ignore[arg-type]
            tk.WrongType,
            "expected_version",
        ),
        "append nothing to a version that is false": (
            lambda s: s.append_many([], expected_version=cast("str", False)),
            tk.WrongType,
            "bool",
        ),
        "mark nothing at a version that is true": (lambda s: s.mark_many([], expected_version=cast("str", True)), tk.WrongType, "bool"),
        "mark nothing at another version": (lambda s: s.mark_many([], expected_version="x"), tk.Conflict, "not 'x'"),
        "rewind a version that is a number": (lambda s: s.rewind(1, expected_version=cast("str", 1)), tk.WrongType, "expected_version"),
        "edit a version that is a number": (lambda s: s.edit(1, "x", expected_version=cast("str", 1)), tk.WrongType, "expected_version"),
        "regenerate a version that is 0.0": (lambda s: s.regenerate("x", expected_version=cast("str", 0.0)), tk.WrongType, "float"),
        "ordinals of no one": (lambda s: s.ordinals(any_, [1]), tk.WrongType, "seat"),
        "gather nothing": (lambda s: s.gather("dm", any_), tk.WrongType, "Gathering"),
        "gather of no one": (lambda s: s.gather(any_, any_), tk.WrongType, "seat"),
        "stretch of no one": (lambda s: s.stretch(any_), tk.WrongType, "seat"),
        "extras with a number": (lambda s: s.context("rogue", extras={"facts": 5}), tk.WrongType, "list of notes"),  # type: ignore[dict-item]
        "a huge budget": (
            lambda s: s.context("rogue", budget=HUGE),
            tk.InvalidInput,
            "at most 9223372036854775807, not a number of 1329 bits",
        ),
        "a huge budget of a brief": (lambda s: s.brief("rogue", budget=HUGE), tk.InvalidInput, "budget must be at most"),
        "a huge budget of folds": (lambda s: s.folds("rogue", budget=HUGE), tk.InvalidInput, "budget must be at most"),
        "a huge rank": (lambda s: s.mark("moment", {"a": 1}, of=[1], rank=HUGE), tk.InvalidInput, "rank must be a number"),
        "rewind to a huge number": (lambda s: s.rewind(10**5000), tk.UnknownTurn, "no entry number a number of"),
        "a turn of a huge number": (lambda s: s.turn(10**5000), tk.UnknownTurn, "goes from 1 to"),
        "extras None of a part": (lambda s: s.context("rogue", extras={"facts": any_}), tk.WrongType, "a list of notes, not to NoneType"),
        "a note of the rank None": (lambda s: s.context("rogue", extras={"facts": [tk.Note("x", rank=any_)]}), tk.InvalidInput, "rank"),
        "a note of the sources 5": (
            lambda s: s.context("rogue", extras={"facts": [tk.Note("x", sources=5)]}),  # type: ignore[arg-type]
            tk.WrongType,
            "sources",
        ),
        "a watcher that is none": (lambda s: watched(s, 5), tk.WrongType, "a watcher must be a function"),
        "regenerate over a pin": (lambda s: s.regenerate("x" * (LIMIT + 1)), tk.InvalidInput, "bytes"),
    }
    return bad


BAD_CALLS = bad_calls()


@pytest.mark.parametrize("name", BAD_CALLS)
async def test_a_call_that_cannot_mean_anything_is_refused(quick_story: tk.Story, name: str) -> None:
    call, error, message = BAD_CALLS[name]
    before = await look(quick_story)
    with pytest.raises(error, match=message):
        await call(quick_story)
    assert await look(quick_story) == before, "a refused call left something behind"


LONG_CALLS: dict[str, Call] = {
    "speaker": lambda s: s.append(LONG, "Hi."),
    "kind": lambda s: s.append("dm", "Hi.", kind=LONG),  # type: ignore[arg-type]
    "hearers": lambda s: s.append("dm", "Hi.", heard_by=LONG),
    "version": lambda s: s.append("dm", "Hi.", expected_version=LONG),
    "turn": lambda s: s.turn(LONG),
    "fold": lambda s: s.fold(LONG),
    "override": lambda s: s.override(LONG, "Text."),
    "branch": lambda s: s.switch(LONG),
    "part": lambda s: s.context("rogue", extras={LONG: []}),
    "rank": lambda s: s.mark("moment", {"a": 1}, of=[1], rank=LONG),  # type: ignore[arg-type]
    "drop": lambda s: s.mark("moment", {"a": 1}, of=[1], drops=["x" * 200]),
    "callback": lambda s: callbacks.add(s, "x", LONG, of=1),  # type: ignore[arg-type]
    "contributors": lambda s: memory.remember(s, "rogue", contributors=LONG),  # type: ignore[arg-type]
    "session": lambda s: memory.session_summary(s, "rogue", 10**4000),
}


@pytest.mark.parametrize("name", LONG_CALLS)
async def test_an_error_does_not_say_all_of_a_long_value_again(quick_story: tk.Story, name: str) -> None:
    with pytest.raises(tk.TalekeeperError) as raised:
        await LONG_CALLS[name](quick_story)
    assert len(str(raised.value)) < 500


async def test_the_greatest_number_that_is_taken_is_no_trouble(quick_story: tk.Story) -> None:
    most = 2**63 - 1
    assert (await quick_story.context("rogue", budget=most)).text
    assert (await quick_story.brief("rogue", budget=most)).text
    assert await quick_story.recall("rogue", "gate", limit=most)
    assert (await quick_story.mark("moment", {"a": 1}, of=[1], rank=1e100, keep=most)).rank == 1e100


async def test_refused_calls_leave_nothing_behind_on_any_store(story: tk.Story) -> None:
    before = await look(story)
    for name, (call, _, _) in BAD_CALLS.items():
        version = story.version
        try:
            await call(story)
        except Exception:  # of which kind it is, is shown by the test above
            assert story.version == version, name
        else:
            await story.rewind(int(version.split(".")[1]))
    assert (await look(story))[2:6] == before[2:6]


async def test_what_comes_as_an_iterator_is_as_good_as_a_list(keeper: tk.Keeper) -> None:
    def each(*values: Any) -> Any:
        return (value for value in values)

    story = await keeper.story(KEY, seats=[*SEATS, tk.Seat("owl", aliases=each("Strix"))])
    assert {seat.id: seat for seat in story.seats}["owl"].aliases == ("Strix",)
    told = await story.append("dm", "Hush.")
    first = await story.append("dm", "Psst.", heard_by=each("a", "b"), mentions=each("Elena"), cites=each(told.id))
    assert (first.audience, first.mentions, first.cites) == (("a", "b", "dm"), ("Elena",), (told.id,))
    again = await story.append("dm", "Psst.", heard_by=each("a"))
    assert (await story.append("dm", "Psst.", heard_by=each("a"))).audience == again.audience == ("a", "dm")
    drafts = each(
        tk.Draft("dm", "So.", each("b"), mentions=each("Borin"), marks=each(tk.Mark("x", {}, of=each(first), heard_by=each("b"))))
    )
    (drafted,) = await story.append_many(drafts)
    assert (drafted.audience, drafted.mentions) == (("b", "dm"), ("Borin",))
    assert [mark.sources for mark in await story.marks("b", "x")] == [(first.id, drafted.id)]
    assert (await story.note("Lore.", heard_by=each("bard"))).audience == ("bard", "dm")
    assert (await story.reveal(first, each("bard"))).audience == ("bard", "dm")
    assert (await story.regenerate("Otherwise.", mentions=each("Mira"))).mentions == ("Mira",)
    assert [turn.kind for turn in await story.turns(kinds=each("note", "event"))] == ["note", "event"]
    (mark,) = await story.mark_many(each(tk.Mark("y", {}, of=each(first))))
    new = await story.mark("y", {"n": 1}, of=each(2, first), heard_by=each("a", "b"), drops=each(mark.id))
    assert (new.sources, new.audience) == ((first.id, first.id), ("a", "b", "dm"))
    assert await story.marks("a", "y") == [new]
    assert await story.ordinals("a", each(2, again)) == [2, 3]
    assert "(!)" in (await story.context("a", extras={"facts": each(tk.Note("(!)"))})).text


# -- keys and seats ----------------------------------------------------------------------------------------------------

BAD_KEYS: dict[str, tuple[Any, type[tk.TalekeeperError], str]] = {
    "None": (None, tk.MissingKey, "no memory key"),
    "a bare session id": ("ash-crown", tk.WrongType, "MemoryKey, not str"),
    "a tuple": (("acme", "ana", "s"), tk.WrongType, "MemoryKey, not tuple"),
    "a dict": ({"tenant_id": "a", "user_id": "b", "session_id": "c"}, tk.WrongType, "MemoryKey, not dict"),
    "no tenant": (tk.MemoryKey("", "b", "c"), tk.MissingKey, "tenant_id"),
    "no user": (tk.MemoryKey("a", "", "c"), tk.MissingKey, "user_id"),
    "a blank session": (tk.MemoryKey("a", "b", "  \n"), tk.MissingKey, "session_id"),
    "a None inside": (tk.MemoryKey("a", None, "c"), tk.WrongType, "user_id"),  # type: ignore[arg-type]
    "a number inside": (tk.MemoryKey("a", "b", 7), tk.WrongType, "session_id"),  # type: ignore[arg-type]
    "a surrogate": (tk.MemoryKey("a", "b", "\ud800"), tk.InvalidInput, "surrogate"),
    "a nul": (tk.MemoryKey("a\0", "b", "c"), tk.InvalidInput, "NUL"),
    "too long": (tk.MemoryKey("a" * 201, "b", "c"), tk.InvalidInput, "201"),
}


@pytest.mark.parametrize("name", BAD_KEYS)
async def test_without_a_whole_key_there_is_no_memory(keeper: tk.Keeper, story: tk.Story, name: str) -> None:
    key, error, message = BAD_KEYS[name]
    before = await look(story)
    for call in (lambda: keeper.story(key, seats=SEATS), lambda: keeper.story(key), lambda: keeper.delete(key)):
        with pytest.raises(error, match=message):
            await call()
    assert await keeper.keys() == [KEY]
    assert await look(story) == before


BAD_SEATS: dict[str, tuple[Any, type[tk.TalekeeperError], str]] = {
    "a string": ("rogue", tk.WrongType, "list of Seat"),
    "strings": (["rogue"], tk.WrongType, "Seat, not str"),
    "a seat alone": (tk.Seat("x"), tk.WrongType, "list of Seat"),
    "a number": (5, tk.WrongType, "list of Seat"),
    "the same id twice": ([tk.Seat("x"), tk.Seat("x", role="npc")], tk.InvalidInput, "two seats have the id 'x'"),
    "an empty id": ([tk.Seat("")], tk.InvalidInput, "id"),
    "an id None": ([tk.Seat(None)], tk.WrongType, "id"),  # type: ignore[arg-type]
    "the id of the common view": ([tk.Seat("*")], tk.InvalidInput, r"'\*'"),
    "an id with a line break": ([tk.Seat("a\nb")], tk.InvalidInput, "printed"),
    "a bad role": ([tk.Seat("x", role="player")], tk.InvalidInput, "dm, pc, npc"),  # type: ignore[arg-type]
    "a role None": ([tk.Seat("x", role=None)], tk.InvalidInput, "role"),  # type: ignore[arg-type]
    "a limit of 0": ([tk.Seat("x", token_limit=0)], tk.InvalidInput, "token limit of seat 'x'"),
    "a negative limit": ([tk.Seat("x", token_limit=-5)], tk.InvalidInput, "at least 1"),
    "a limit True": ([tk.Seat("x", token_limit=True)], tk.WrongType, "bool"),
    "a limit as text": ([tk.Seat("x", token_limit="8k")], tk.WrongType, "str"),  # type: ignore[arg-type]
    "a huge limit": ([tk.Seat("x", token_limit=HUGE)], tk.InvalidInput, "at most"),
    "a name that is a list": ([tk.Seat("x", name=[])], tk.WrongType, "name"),  # type: ignore[arg-type]
    "fold_at 0": ([tk.Seat("x", fold_at=0)], tk.InvalidInput, "fold_at"),
    "fold_at 1.5": ([tk.Seat("x", fold_at=1.5)], tk.InvalidInput, "fold_at"),
    "fold_at nan": ([tk.Seat("x", fold_at=float("nan"))], tk.InvalidInput, "fold_at"),
    "fold_at as text": ([tk.Seat("x", fold_at="0.8")], tk.InvalidInput, "fold_at"),  # type: ignore[arg-type]
    "keep 0": ([tk.Seat("x", keep=0)], tk.InvalidInput, "keep"),
    "a name with a line break": ([tk.Seat("x", name="a\nb")], tk.InvalidInput, "printed"),
    "a name as a number": ([tk.Seat("x", name=5)], tk.WrongType, "name"),  # type: ignore[arg-type]
    "aliases as one string": ([tk.Seat("x", aliases="Al")], tk.WrongType, "aliases"),  # type: ignore[arg-type]
    "a good seat and a bad one": ([tk.Seat("x"), tk.Seat("y", keep=0)], tk.InvalidInput, "'y'"),
}


@pytest.mark.parametrize("name", BAD_SEATS)
async def test_seats_that_make_no_sense_are_refused_in_a_new_story_and_in_a_known_one(
    keeper: tk.Keeper, story: tk.Story, name: str
) -> None:
    seats, error, message = BAD_SEATS[name]
    before = await look(story)
    for key in (KEY, tk.MemoryKey("acme", "ana", "new")):
        with pytest.raises(error, match=message):
            await keeper.story(key, seats=seats)
    assert await keeper.keys() == [KEY]
    assert await look(story) == before


async def test_an_unknown_branch_of_a_known_story_is_refused(keeper: tk.Keeper, story: tk.Story) -> None:
    with pytest.raises(tk.UnknownBranch, match="main"):
        await keeper.story(KEY, branch="nope")
    assert (await (await keeper.story(KEY)).append("dm", "Still here.")).text == "Still here."


async def test_an_unknown_branch_makes_no_story_and_seats_nobody(keeper: tk.Keeper, story: tk.Story) -> None:
    before = await look(story)
    for key in (KEY, tk.MemoryKey("acme", "ana", "new")):
        with pytest.raises(tk.UnknownBranch, match="there are: main"):
            await keeper.story(key, seats=[tk.Seat("cleric")], branch="nope")
    assert await keeper.keys() == [KEY]
    assert await look(story) == before
    await story.fork(name="what if")
    assert "cleric" in [seat.id for seat in (await keeper.story(KEY, seats=[tk.Seat("cleric")], branch="what if")).seats]


@pytest.mark.parametrize("target", ["redis://localhost", "postgresql://x/y", "ftp://z"], indirect=False)
async def test_an_address_that_no_store_serves_is_refused(target: str) -> None:
    with pytest.raises(tk.TalekeeperError, match="store"):
        await tk.open(target)


async def test_a_summarizer_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(tk.WrongType, match="async callable"):
        tk.open(":memory:", summarizer="gpt")  # type: ignore[arg-type]


async def rules_nothing(action: str) -> Any:
    return "14. Hits."


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "no model at once": ({"models_at_once": 0}, "models_at_once must be at least 1, not 0"),
    "fewer than none at once": ({"models_at_once": -1}, "models_at_once must be at least 1, not -1"),
    "models at once as text": ({"models_at_once": "2"}, "models_at_once must be a whole number, not str"),
    "a retry that is a number": ({"retry": 5}, "retry must be a RetryPolicy, not int"),
    "a counter that is a number": ({"counter": 5}, "a counter must have `id`, `additive` and `count`"),
    "no clock": ({"clock": None}, "a clock must be a function that gives seconds, not NoneType"),
    "a timeout as text": ({"timeout": "x"}, "timeout must be a number of seconds, not str"),
    "a timeout that is no number": ({"timeout": float("nan")}, "timeout must be a number of seconds from 0 up, not nan"),
    "a negative timeout": ({"timeout": -1}, "timeout must be a number of seconds from 0 up, not -1"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
@pytest.mark.parametrize("summarizer", [None, rules_nothing], ids=["extractive", "model"])
def test_settings_that_make_no_sense_are_refused_before_anything_is_made(name: str, summarizer: Any, tmp_path: Path) -> None:
    settings, message = BAD_SETTINGS[name]
    with pytest.raises(tk.InvalidInput, match=re.escape(message)):
        tk.open(tmp_path / "saga.db", summarizer=summarizer, **settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["a\0b.db", "half \ud83d.db", "x" * 300 + ".db", "x" * 253, "long/" * 2000], ids=range(5))
def test_a_path_that_no_file_can_have_is_refused_before_anything_is_made(path: str, tmp_path: Path) -> None:
    for target in (str(tmp_path / "") + "/" + path, tmp_path / path):
        with pytest.raises(tk.InvalidInput, match="cannot be the path of a file") as raised:
            tk.open(target)
        assert len(str(raised.value)) < 1000
    assert not list(tmp_path.iterdir())


def test_an_empty_path_is_said_to_be_empty() -> None:
    with pytest.raises(tk.InvalidInput, match="the path of the file is empty"):
        tk.open("")


BAD_MAKINGS: dict[str, Callable[[], object]] = {
    "a pause that is no number": lambda: tk.RetryPolicy(pause=float("nan")),
    "a pause below 0": lambda: tk.RetryPolicy(pause=-1),
    "no attempt at all": lambda: tk.RetryPolicy(attempts=0),
    "attempts as text": lambda: tk.RetryPolicy(attempts="3"),  # type: ignore[arg-type]
    "no seconds to recover": lambda: tk.RetryPolicy(recover_after=None),  # type: ignore[arg-type]
    "a janitor without a model": lambda: tk.Janitor(None),  # type: ignore[arg-type]
    "a janitor's timeout": lambda: tk.Janitor(rules_nothing, timeout=float("nan")),  # type: ignore[arg-type]
    "a canon of None": lambda: tk.Recipe(canon=None),  # type: ignore[arg-type]
    "a heading that is a number": lambda: tk.Recipe(story_heading=5),  # type: ignore[arg-type]
    "an empty heading": lambda: tk.Recipe(story_heading=""),
    "a fold_at as text": lambda: tk.Recipe(fold_at="x"),  # type: ignore[arg-type]
    "parts that are a number": lambda: tk.Recipe(volatile=5),  # type: ignore[arg-type]
    "parts that are text": lambda: tk.Recipe(volatile=("facts",)),  # type: ignore[arg-type]
    "a share as text": lambda: tk.Part("x", "## X\n", share="x"),  # type: ignore[arg-type]
    "a huge share": lambda: tk.Part("x", "## X\n", share=HUGE),
    "a part's name of None": lambda: tk.Part(None, "## X\n"),  # type: ignore[arg-type]
    "most as text": lambda: tk.Part("x", "## X\n", topic="moment", most="5"),  # type: ignore[arg-type]
    "no priority": lambda: tk.Part("x", "## X\n", priority=None),  # type: ignore[arg-type]
    "a factor of None": lambda: tk.Heuristic(factor=None),  # type: ignore[arg-type]
    "a family that is a list": lambda: tk.counter_for([]),  # type: ignore[arg-type]
    "an estimate of None": lambda: tk.estimate_tokens(None),  # type: ignore[arg-type]
    "an estimate of bytes": lambda: tk.estimate_tokens(b"x"),  # type: ignore[arg-type]
    "a key of numbers": lambda: tk.MemoryKey(5, "u", "s").composite(),  # type: ignore[arg-type]
    "a long family": lambda: tk.counter_for(LONG),
    "a long encoding": lambda: tk.Exact(LONG),
    "a long heading": lambda: tk.Recipe(story_heading=LONG[:LIMIT]),
}


@pytest.mark.parametrize("name", BAD_MAKINGS)
def test_what_is_made_of_wrong_values_is_refused_at_once(name: str) -> None:
    with pytest.raises(tk.InvalidInput) as raised:
        BAD_MAKINGS[name]()
    assert len(str(raised.value)) < 500


async def test_a_keeper_that_is_not_open_says_how_to_open_it() -> None:
    with pytest.raises(tk.InvalidInput, match="async with"):
        await tk.open(":memory:").story(KEY, seats=SEATS)


async def test_refused_input_is_refused_in_the_same_way_after_it_was_opened_again(open_file: OpenKeeper) -> None:
    for _ in range(2):
        keeper = await open_file()
        story = await keeper.story(KEY, seats=SEATS)
        await story.append("dm", "Fine.")
        with pytest.raises(tk.UnknownSeat, match="did you mean 'rogue'"):
            await story.append("rouge", "No.")
        with pytest.raises(tk.WrongType):
            await story.append("dm", None)  # type: ignore[arg-type]
        await keeper.close()


@pytest.mark.parametrize("target", [None, 5, b"saga.db"])
async def test_only_a_path_or_a_store_can_be_opened(target: object) -> None:
    with pytest.raises(tk.WrongType, match="a file's path"):
        async with tk.open(target):  # type: ignore[arg-type]
            pass


BAD: Any = 5
NOBODY: Any = None
MEMORY_CALLS: dict[str, tuple[Call, str]] = {
    "a threshold that is no number": (lambda s: memory.MemoryManager(s).is_near_limit("rogue", float("nan")), "threshold must be a number"),
    "an endless threshold": (lambda s: memory.MemoryManager(s).is_near_limit("rogue", float("inf")), "threshold must be a number"),
    "a huge budget": (lambda s: memory.remember(s, "rogue", budget=HUGE), "budget must be at most"),
    "no state": (lambda s: memory.context_manager(None), "expected a Story, found None"),  # type: ignore[call-overload]
    "a state without a story": (lambda s: memory.context_manager({}), 'put it under "story"'),
    "no contributors": (lambda s: memory.remember(s, "rogue", contributors=None), "contributors must be a list"),  # type: ignore[arg-type]
    "a contributor that is none": (lambda s: memory.remember(s, "rogue", contributors=[BAD]), "contributors must be a list"),
    "extras of remember": (lambda s: memory.remember(s, "rogue", extras=BAD), "extras must map parts to notes, not int"),
    "extras of build_context": (lambda s: memory.build_context(s, "rogue", extras=BAD), "extras must map parts to notes, not int"),
    "a session that is a list": (lambda s: memory.session_summary(s, "rogue", []), "number must be a whole number, not list"),  # type: ignore[arg-type]
    "a character that is a number": (lambda s: memory.character_facts(s, "rogue", BAD), "a character must be a seat's id or a name"),
    "a moment that is text": (lambda s: memory.add_adventure_moment(s, "x", of=2), "an AdventureMoment, not str"),  # type: ignore[arg-type]
    "a text to pin": (lambda s: memory.pin_moment(s, "x"), "an AdventureMoment, not str"),  # type: ignore[arg-type]
    "no keeper": (lambda s: memory.resolve_action_with_moments(s, None, "I hit."), "keeper must be an async function"),  # type: ignore[arg-type]
    "no ruling": (lambda s: memory.resolve_action_with_moments(s, rules_nothing, "I hit."), "with a KeeperResponse, not str"),
    "marks that are none": (lambda s: memory.resolve_action_with_moments(s, rules_nothing, "I hit.", marks=BAD), "marks must be a list"),
    "no recipe": (lambda s: memory.remember(s, "rogue", recipe=BAD), "recipe must be a Recipe, not int"),
    "a seat that is a list": (lambda s: memory.character_facts(s, []), "a seat's id must be a string, not list"),  # type: ignore[arg-type]
    "moments without end": (lambda s: memory.adventure_moments(s, "rogue", limit=BAD / 2), "limit must be a whole number, not float"),
    "a place that is a list": (lambda s: memory.MemoryService(s).location_memory("rogue", []), "location_id must be a string, not list"),  # type: ignore[arg-type]
    "notes for a list": (lambda s: memory.MemoryService(s).notes([]), "a seat's id must be a string, not list"),  # type: ignore[arg-type]
    "what the author knows for a prompt": (
        lambda s: memory.MemoryService(s).world_memory(NOBODY),
        "a seat's id must be a string, not NoneType",
    ),
    "an author at a place": (
        lambda s: memory.MemoryService(s).location_memory(NOBODY, "inn"),
        "a seat's id must be a string, not NoneType",
    ),
    "one npc alone": (lambda s: memory.MemoryService(s).npc_memory("rogue", "elena"), "npc_ids must be a list, not 'elena'"),
    "a source that is a list": (lambda s: memory.MemoryService(s).entries("rogue", []), "a memory is of one of location"),  # type: ignore[arg-type]
    "an event that is none": (lambda s: memory.MemoryService(s).summarize_world_update(BAD, []), "event_kind must be a string, not int"),
    "a place that is none": (
        lambda s: memory.MemoryService(s).summarize_location_session(BAD, []),
        "location_id must be a string, not int",
    ),
    "a ruling at once": (lambda s: memory.resolve_action_with_moments(s, str.upper, "I hit."), "with a KeeperResponse, not str"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MEMORY_CALLS)
async def test_a_call_of_a_memory_that_cannot_mean_anything_is_refused(quick_story: tk.Story, name: str) -> None:
    call, message = MEMORY_CALLS[name]
    before = await look(quick_story)
    with pytest.raises(tk.InvalidInput, match=message):
        await call(quick_story)
    assert await look(quick_story) == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: memory.build_moment_from_keeper(BAD, 1), "with a KeeperResponse, not int"),
        (lambda: memory.format_moments_for_context(BAD), "moments must be a list, not 5"),
        (lambda: memory.format_moments_for_context([BAD]), "an AdventureMoment, not int"),
        (lambda: memory.format_character_facts(BAD), "facts must be CharacterFacts, not int"),
        (lambda: memory.KeeperResponse("Hits.", commands=BAD), "commands must be a list, not 5"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_what_needs_no_story(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tk.WrongType, match=message):
        call()


async def test_agents_memory_is_of_a_story_and_not_of_its_past(quick_story: tk.Story) -> None:
    with pytest.raises(tk.WrongType, match="that of a Story, not of a Past"):
        memory.MemoryManager(await quick_story.at(5))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (14.25, tk.WrongType, "what the token counter gives must be a whole number, not float"),
        ("5", tk.WrongType, "not str"),
        (None, tk.WrongType, "not NoneType"),
        (True, tk.WrongType, "not bool"),
        (-3, tk.InvalidInput, "what the token counter gives must be at least 0, not -3"),
        (2**70, tk.InvalidInput, "must be at most"),
    ],
)
async def test_a_counter_that_gives_no_count_is_refused_and_nothing_is_written(
    open_keeper: OpenKeeper, given: Any, error: type[Exception], message: str
) -> None:
    class Odd:
        id, additive = "odd", False

        def count(self, text: str) -> Any:
            return given if "odd" in text else len(text)

    story = await begin(await open_keeper(counter=Odd()))
    before = await look(story)
    for tell in (
        lambda: story.append("dm", "This is odd."),
        lambda: story.append_many([tk.Draft("dm", "This is not."), tk.Draft("dm", "This is odd.")]),
        lambda: story.note("An odd note."),
        lambda: story.begin_session("An odd session"),
        lambda: story.context("dm", budget=300, extras={"facts": [tk.Note("An odd fact.")]}),
    ):
        with pytest.raises(error, match=message):
            await tell()
    assert await look(story) == before


@pytest.mark.parametrize("id", [5, "", "two\nlines"])
def test_a_counter_without_a_name_is_refused(id: Any) -> None:
    class Nameless(tk.Heuristic):
        def __init__(self) -> None:
            super().__init__()
            self.id = id

    with pytest.raises((tk.WrongType, tk.InvalidInput), match="a counter's id"):
        tk.open(":memory:", counter=Nameless())


@pytest.mark.parametrize(
    ("shown", "error", "message"),
    [
        ("noon", tk.WrongType, "what the clock gives must be a number of seconds, not str"),
        (None, tk.WrongType, "not NoneType"),
        (True, tk.WrongType, "not bool"),
        (float("nan"), tk.InvalidInput, "what the clock gives must be in seconds, not nan"),
        (float("inf"), tk.InvalidInput, "not inf"),
        (float("-inf"), tk.InvalidInput, "not -inf"),
        (1.75e12, tk.InvalidInput, "must be in seconds"),
        (HUGE, tk.InvalidInput, "must be in seconds"),
    ],
    ids=["text", "None", "True", "NaN", "infinity", "minus infinity", "milliseconds", "huge"],
)
async def test_a_clock_that_shows_no_time_is_refused_and_nothing_is_written(
    open_keeper: OpenKeeper, shown: Any, error: type[Exception], message: str
) -> None:
    times: list[Any] = [5.0]
    story = await begin(await open_keeper(clock=lambda: times[-1]))
    before = await look(story)
    times.append(shown)
    calls: tuple[Call, ...] = (
        lambda s: s.append("dm", "As usual."), lambda s: s.append_many([tk.Draft("dm", "One."), tk.Draft("dm", "Two.")]),
        lambda s: s.enter("bard", "mill"), lambda s: s.pin(6), lambda s: s.regenerate("Otherwise."), lambda s: s.begin_session(),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(error, match=re.escape(message)):
            await call(story)
    assert await look(story) == before
    times.append(7)
    assert [(await story.append("dm", "On it goes.")).time, type((await story.turns())[-1].time)] == [7.0, float]


@pytest.mark.parametrize("blank", [" ", "\t", "\n", " \n", "\u00a0", "\u2028"], ids=ascii)
async def test_a_text_of_very_many_blanks_holds_up_nobody(blank: str) -> None:
    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=300)])
        text = f"A{blank * (30_000 // len(blank))}end"
        began = time.process_time()
        await story.append("dm", text)
        for number in range(14):
            await story.append("dm", f"On day {number} the captain walks to the river, and Mira pays three gold.")
        await story.context("dm", budget=200)
        assert time.process_time() - began < 1.0, "in proportion to its length, and not to the square of that"


@pytest.mark.parametrize("wrong", [None, False, 0, 0.0])
async def test_marks_that_are_none_are_told_from_no_marks(quick_story: tk.Story, wrong: Any) -> None:
    before = await look(quick_story)
    with pytest.raises(tk.WrongType, match="marks must be a list of Mark"):
        await quick_story.append_many([tk.Draft("dm", "So.", marks=wrong)])
    if wrong is not None:
        with pytest.raises(tk.WrongType, match="heard_by must be a list"):
            await quick_story.mark_many([tk.Mark("x", {}, heard_by=wrong)])
    assert await look(quick_story) == before


# -- event loops -------------------------------------------------------------------------------------------------------

LOOPS = "the keeper was opened in another event loop: open it in the one where it is used, or take `talekeeper.sync`"


async def opened(path: Path) -> tuple[tk.Keeper, tk.Story]:
    keeper = await tk.open(path, durable=False)
    return keeper, await keeper.story(KEY, seats=[tk.Seat("dm", role="dm"), tk.Seat("rogue")])


def uses(keeper: tk.Keeper, story: tk.Story) -> list[Callable[[], Awaitable[object]]]:
    return [
        lambda: story.append("dm", "Once more."),
        lambda: story.append_many([tk.Draft("dm", "Once more.", id="once")]),
        lambda: story.context("rogue"),
        lambda: story.recall("rogue", "Once"),
        lambda: story.rewind(0),
        lambda: keeper.story(tk.MemoryKey("acme", "ana", "another"), seats=[tk.Seat("dm", role="dm")]),
        lambda: keeper.keys(),
        lambda: keeper.delete(KEY),
    ]


async def refused(do: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(tk.InvalidInput, match=LOOPS):
        await do()


def test_a_keeper_of_a_loop_that_has_ended_says_so_and_can_be_closed(tmp_path: Path) -> None:
    keeper, story = asyncio.run(opened(tmp_path / "saga.db"))
    for do in uses(keeper, story):
        asyncio.run(refused(do))
    for _ in range(2):
        asyncio.run(keeper.close())

    async def again() -> list[tk.Turn]:
        async with keeper:
            return await (await keeper.story(KEY)).turns()

    assert asyncio.run(again()) == []


async def test_a_keeper_of_a_loop_that_goes_on_says_so_and_stays_open(tmp_path: Path) -> None:
    keeper, story = await opened(tmp_path / "saga.db")
    for do in [*uses(keeper, story), keeper.close]:
        await asyncio.to_thread(asyncio.run, refused(do))
    await story.append("dm", "It goes on.")
    await keeper.close()
