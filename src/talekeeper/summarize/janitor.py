"""Folds by a language model: asked, timed, checked, repaired once, and never trusted.

A summary counts only if it is shorter than what it stands for, is about the same things, and still names what must survive (names,
things, numbers that all its hearers know of). What a repair does not bring back is appended, and so are promises and debts that it
does not tell: in the sentences of the pieces where there is room, else by name. Everything else is a
`SummaryFailed`: the extractive fold stays, and nothing is lost (I6).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from inspect import isawaitable

from talekeeper import rim
from talekeeper.errors import SummaryFailed, WrongType, reason_of
from talekeeper.model import Sentence
from talekeeper.ports import ChatModel, Message, Spending
from talekeeper.summarize import attribution, faithful, posing, refusal
from talekeeper.summarize.retelling import Telling, as_turn, retell
from talekeeper.summarize.sentences import split_sentences
from talekeeper.summarize.words import language
from talekeeper.summarize.wrapping import unwrapped
from talekeeper.tokens import estimate_tokens

PROMPT = resources.files("talekeeper.summarize").joinpath("janitor.md").read_text("utf-8")
FAR_TOO_LONG = 100_000
"""An answer of more signs, and of more than all that was asked, is refused unread."""
_WISH = "These must not be missing: {lost}. Write the whole again with them, in the same form and no longer."
_STRAY = "These numbers are in none of the turns: {stray}. Write the whole again without them, in the same form and no longer."
_TELLING = 4
"""Where so many names must survive and none is there, nor anything else that must, the summary is about something else."""
_CITED = re.compile(r"\S.*?(?:[.!?…][\"”»’)]*(?:\s*\[[^\]\n]*\])*(?:\s+|\Z)|[。！？](?:\s*\[[^\]\n]*\])*\s*|\n+|\Z)")
"""A sentence with what it cites."""
_CITATION = re.compile(r"(?<!\s)\s*\[\s*(\d+(?:\s*[,;–-]\s*\d+)*)\s*\]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A turn or a smaller fold as a model sees it, with the ids of the turns it stands for. `at`: the entry at which that was, of what
    stands in a smaller fold."""

    text: str
    sources: tuple[str, ...]
    at: int = 0


@dataclass(frozen=True, slots=True)
class Janitor:
    """Makes summaries with any chat model."""

    model: ChatModel
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not callable(self.model):
            raise WrongType("a summarizer must be an async callable from messages to text")
        rim.seconds(self.timeout, "timeout")

    async def summarize(
        self, pieces: Sequence[Piece], known: Sequence[str], limit: int, spend: Callable[[Spending], None], *, focus: str = ""
    ) -> tuple[Sentence, ...]:
        """The pieces in at most `limit` tokens or so. Raises `SummaryFailed`. What it costs is reported as it is spent.

        `focus`: what to tell above all, as one more instruction."""
        texts = [piece.text for piece in pieces]
        asked = "\n".join(filter(None, [PROMPT.format(limit=max(20, int(limit * 0.7))), focus]))
        messages: list[Message] = [
            {"role": "system", "content": asked},
            {"role": "user", "content": "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1))},
        ]
        answer = unwrapped(await self._ask(messages, spend), "\n".join(texts), len(texts))
        summary = _check(answer, texts, asked, spend)
        await asyncio.sleep(0)  # a long turn takes its time: others get theirs
        needed = faithful.must_survive(texts, known, limit=limit)
        lost: Sequence[str] = faithful.missing(summary, needed)
        await asyncio.sleep(0)
        told, rest = retell(summary, lost, texts, limit=limit)
        stray = faithful.strange_numbers(summary, texts)
        if lost or stray:
            missed = "; ".join([*(telling.text.rstrip(".") for telling in told), *rest])
            wish = " ".join([_WISH.format(lost=missed)] * bool(lost) + [_STRAY.format(stray="; ".join(stray))] * bool(stray))
            better, lost = await self._repair(messages, answer, lost, needed, texts, wish, spend)
            if stray and (stray := faithful.strange_numbers(_uncited(better), texts)):
                better = _without(better, stray)
                lost = faithful.missing(_uncited(better), needed)
                if not _uncited(better).strip():
                    spend(Spending(failures=1))
                    reason = f"the model's summary was refused: it counts {stray[0]}, as nothing does that it was made from"
                    raise SummaryFailed(reason, answered=True)
            if better != answer:
                answer = better
                told, rest = retell(_uncited(answer), lost, texts, limit=limit)
        if needed and len(lost) == len(needed) and _names(needed) >= _TELLING:
            spend(Spending(failures=1))
            raise SummaryFailed("the model's summary was refused: it names nobody and nothing of what must survive", answered=True)
        return (*_in_time(cite(answer, pieces), pieces), *_added(told, rest, pieces))

    async def _repair(
        self, messages: Sequence[Message], answer: str, lost: Sequence[str], needed: Sequence[str], texts: Sequence[str],
        wish: str, spend: Callable[[Spending], None],
    ) -> tuple[str, Sequence[str]]:  # fmt: skip
        """One more try, told what is missing, and what is made up; the better of the two answers."""
        wished: Message = {"role": "user", "content": wish}
        try:
            said = await self._ask([*messages, {"role": "assistant", "content": answer}, wished], spend)
            again = unwrapped(said, "\n".join(texts), len(texts))
            still = faithful.missing(_check(again, texts, f"{messages[0]['content']}\n{_WISH}\n{_STRAY}", spend), needed)
        except SummaryFailed:
            return answer, lost
        stray, before = (len(faithful.strange_numbers(_uncited(one), texts)) for one in (again, answer))
        return (again, still) if (stray, len(still)) < (before, len(lost)) else (answer, lost)

    async def _ask(self, messages: Sequence[Message], spend: Callable[[Spending], None]) -> str:
        asked = sum(estimate_tokens(message["content"]) for message in messages)
        task = asyncio.ensure_future(_await(self.model, messages))
        try:
            done, _ = await asyncio.wait({task}, timeout=self.timeout)
        finally:
            task.cancel()  # a model that never comes back is left behind, not waited for
        if not done:
            spend(Spending(calls=1, tokens_in=asked, failures=1))
            raise SummaryFailed(f"the model did not answer within {self.timeout:g} s")
        try:
            answer = task.result()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as exc:  # also its own cancellation (ours would have been raised by the waiting), or a panic of native code
            spend(Spending(calls=1, tokens_in=asked, failures=1))
            raise SummaryFailed(f"the model failed: {reason_of(exc)}") from exc
        if not isinstance(answer, str):
            spend(Spending(calls=1, tokens_in=asked, failures=1))
            raise SummaryFailed(f"the model returned {type(answer).__name__}, not text")
        if len(answer) > max(FAR_TOO_LONG, sum(len(message["content"]) for message in messages)):  # to look any closer would take long
            spend(Spending(calls=1, tokens_in=asked, tokens_out=len(answer) // 4, failures=1))
            raise SummaryFailed(f"the model's summary was refused: {len(answer):,} signs are far more than it was given", answered=True)
        spend(Spending(calls=1, tokens_in=asked, tokens_out=estimate_tokens(answer)))
        return answer


async def _await(model: ChatModel, messages: Sequence[Message]) -> object:
    """The model's answer, whatever it is. A plain function is a mistake that is easily made, so it is told apart."""
    answer: object = model(messages)
    if not isawaitable(answer):
        raise TypeError("it is no async function: define the summarizer with `async def`")
    return await answer


def _names(needed: Sequence[str]) -> int:
    return sum(thing[:1].isupper() for thing in needed)


def _without(answer: str, numbers: Sequence[str]) -> str:
    """The answer without the sentences that hold one of the numbers, and without what these cite."""
    held = re.compile(r"(?<!\d)(?:" + "|".join(map(re.escape, numbers)) + r")(?!\d)")
    return "".join([piece[0] for piece in _CITED.finditer(answer) if not held.search(_CITATION.sub("", piece[0]))]).strip()


def _uncited(answer: str) -> str:
    return _CITATION.sub("", answer).strip()


def _check(answer: str, texts: Sequence[str], asked: str, spend: Callable[[Spending], None]) -> str:
    """The summary without its citations. Who answers with an error has not answered: the next fold would fare no better."""
    summary = _uncited(answer)
    reason = refusal.refuse(summary, texts, asked)
    if reason is not None:
        spend(Spending(failures=1))
        raise SummaryFailed(f"the model's summary was refused: {reason}", answered=not refusal.is_error(summary, "\n".join(texts)))
    return summary


def _added(told: Sequence[Telling], rest: Sequence[str], pieces: Sequence[Piece]) -> Iterator[Sentence]:
    """What a summary has lost, in sentences of its pieces as far as there is room, and by name."""
    for telling in told:
        yield Sentence(telling.text, pieces[telling.source].sources, at=pieces[telling.source].at)
    if rest:
        sources = tuple(dict.fromkeys(source for piece in pieces for source in piece.sources))
        yield Sentence(faithful.complete("", rest).strip(), sources, estimated=True, at=pieces[-1].at)


def _in_time(sentences: Sequence[Sentence], pieces: Sequence[Piece]) -> Iterator[Sentence]:
    """The sentences, each with when that was of which it tells, and no earlier than the one before it: in one larger fold may stand what a
    channel heard long ago and what it heard last, and in another what the rest heard meanwhile."""
    times, at = {source: piece.at for piece in reversed(pieces) for source in piece.sources}, 0
    for sentence in sentences:
        at = max(at, min([times[source] for source in sentence.sources], default=0))
        yield sentence._replace(at=at)


def cite(answer: str, pieces: Sequence[Piece]) -> tuple[Sentence, ...]:
    """The answer's sentences with the turns they cite; where a citation is absent or wrong, with the likeliest, marked as estimated."""
    given = _Given(pieces)
    sentences: list[Sentence] = []
    start = 0
    for match in _CITATION.finditer(answer):
        text = answer[start : match.start()].strip()
        start = match.end()
        numbers = _numbers(match.group(1))
        valid = bool(numbers) and all(1 <= number <= len(pieces) for number in numbers)
        *uncited, cited = split_sentences(text) or [""]
        sentences += map(given.estimate, uncited)
        if cited:
            sentences.append(given.cite(cited, [number - 1 for number in numbers]) if valid else given.estimate(cited))
        elif valid and sentences and not sentences[-1].estimated:
            more = (source for number in numbers for source in pieces[number - 1].sources)
            sentences[-1] = Sentence(sentences[-1].text, tuple(dict.fromkeys([*sentences[-1].sources, *more])))
    sentences += map(given.estimate, split_sentences(answer[start:].strip()))
    return tuple(sentence for sentence in sentences if sentence.text.strip(" ."))


def _numbers(text: str) -> list[int]:
    """The numbers of the pieces that a citation names; none where a part of it is neither a number nor a range: "2026-11-18"."""
    numbers: list[int] = []
    for part in re.split(r"[,;]", text):
        ends = [int(digits.strip()[:9]) for digits in re.split("[–-]", part)]  # that many are beyond all pieces
        if len(ends) > 2:
            return []
        numbers += range(ends[0], min(ends[-1], ends[0] + 64) + 1)
    return numbers


class _Given:
    """The pieces that a summary was made from: each is read once, however many sentences are held against it."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces

    @cached_property
    def _words(self) -> list[set[str]]:
        return [_words(piece.text) for piece in self._pieces]

    @cached_property
    def _posing(self) -> list[tuple[str, set[str]]]:
        """Who speaks in each piece and is no narrator, and the names that they put before what they say."""
        turns = [as_turn(0, piece.text) for piece in self._pieces]
        return [("", set[str]()) if attribution.is_narrator(turn) else (turn.voice, _roles(turn.text)) for turn in turns]

    def estimate(self, sentence: str) -> Sentence:
        """The piece that shares the most words with the sentence is its likeliest source."""
        words = _words(sentence)
        shared = [len(words & known) for known in self._words]
        return self.cite(sentence, [shared.index(max(shared))])._replace(estimated=True)

    def cite(self, sentence: str, places: Sequence[int]) -> Sentence:
        """A sentence with its sources. With a name before it that someone else put there (Tam says "Mira: I give you my gold."), it is told
        as theirs."""
        sources = tuple(dict.fromkeys(source for at in places for source in self._pieces[at].sources))
        posing_as = _roles(sentence)
        for voice, roles in [self._posing[at] for at in places] if posing_as else ():
            if voice and voice.casefold() not in posing_as and not posing_as.isdisjoint(roles):
                return Sentence(attribution.attributed(sentence, language(sentence), voice), sources)
        return Sentence(sentence, sources)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.casefold()))


def _roles(text: str) -> set[str]:
    return {name.casefold() for name in posing.roles(text)}
