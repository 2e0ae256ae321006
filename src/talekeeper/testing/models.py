"""Chat models for tests: scripted, and in every bad mood that a real one can have."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

from talekeeper.ports import Message


class ScriptedModel:
    """Answers from a list, or from a function of the messages; remembers what it was asked."""

    def __init__(self, answers: Sequence[str | BaseException] | Callable[[Sequence[Message]], str]) -> None:
        self._answers = answers if callable(answers) else list(answers)
        self.asked: list[list[Message]] = []

    async def __call__(self, messages: Sequence[Message]) -> str:
        self.asked.append(list(messages))
        if callable(self._answers):
            return self._answers(messages)
        if not self._answers:
            raise RuntimeError("the script has no more answers")
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


_PIECE = re.compile(r"^\[(\d+)\] (.*)$", re.M)
_WORD = re.compile(r"\S*\w\S*")


class MoodyModel:
    """A summarizer whose `mood` can be changed: good, uncited, slow, failing, cancelled, empty, garbage, inventing,
    too long, echoing, refusing, reciting, cut off, nul, not text.

    In a good mood it keeps the beginning of each piece, and cites it."""

    def __init__(self, mood: str = "good") -> None:
        self.mood = mood
        self.calls = 0

    async def __call__(self, messages: Sequence[Message]) -> str:
        self.calls += 1
        pieces = _PIECE.findall(messages[1]["content"])
        if self.mood == "slow":
            await asyncio.sleep(3600)
        if self.mood == "failing":
            raise ConnectionError("the model is not reachable")
        if self.mood == "cancelled":
            raise asyncio.CancelledError  # as a client does whose cancel scope leaks
        if self.mood == "not text":
            return None  # type: ignore[return-value]
        answers = {
            "empty": "  \n ",
            "garbage": "zxq " * 7 + "#### ¤¤¤¤",
            "inventing": "They sailed over and burned it down.",
            "too long": messages[1]["content"] * 3,
            "echoing": messages[1]["content"],
            "cut off": "The innkeeper smiles. \ud83d",  # half an emoji
            "nul": "The innkeeper smiles.\0",
            "refusing": "I'm sorry, but I can't help with that.",
            "reciting": messages[0]["content"][:52],
        }
        if self.mood in answers:
            return answers[self.mood]
        kept = [(number, " ".join(words[: min(4, len(words) // 2)])) for number, text in pieces if len(words := _WORD.findall(text)) > 1]
        if self.mood == "uncited":
            return " ".join(f"{text}." for _, text in kept)
        return " ".join(f"{text}. [{number}]" for number, text in kept)
