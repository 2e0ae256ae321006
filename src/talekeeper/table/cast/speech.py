"""What of a model's answer may be heard, decided while it streams. Pure: pieces in, pieces out.

An answer's beginning is held back until it is clear that it is no refusal, no error message and no JSON; from then on whole words pass at
once. A label that the model puts before its words (`[DM]:`) is taken off, and so is thinking aloud. Where the model goes on to speak for
others, the answer has ended. Noise and loops are an `Unfit`, whenever they are seen, and none of it is story text.
"""

from __future__ import annotations

import re

from talekeeper.summarize import refusal

_HEAD = 80
"""Characters that are looked at before the first one is heard."""
_LONGEST_WORD = 40
_LOOSE = " \t\n,;:—–-"
"""What is not left standing before an ellipsis."""
_LOOK_AGAIN = 400
"""Characters after which the whole is looked at once more, for loops."""
_LABEL = re.compile(r"\s*(?:\[[^\]\n]{1,60}\]\s*:?|(?:\*\*)?(?:DM|Dungeon Master|Narrator|Keeper|Epilogue)(?:\*\*)?\s*:(?:\*\*)?)\s*", re.I)
_HEADINGS = re.compile(r"\s*(?:#{1,6} [^\n]*(?:\n\s*|\Z))+")
_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?(</think(?:ing)?>|\Z)\s*", re.S | re.I)
_MAY_THINK = re.compile(r"\s*(?:<(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?)?$|\s*<think(?:ing)?>", re.I)
_OTHERS = re.compile(r"\n\s*(?:\[[^\]\n]{1,60}\]\s*:|#{1,6} |\* \()|<\||\[/?INST|</s>|(?:^|\n)\s*(?:User|Assistant|System|Human):")
_MAY_BE_OTHERS = re.compile(r"(?:\n\s*(?:[\[#*][^\n]{0,64}|(?:U|A|S|H)\w{0,8})?|<[|/s]{0,3}|\[/?I?N?S?T?)$")
_NO_PROSE = re.compile(r"\s*(?:\{|```|<(?!think)[a-z!/?])", re.I)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ASSISTANT = re.compile(
    r"\b(?:assist|request|comply|fulfil|provide|generate|AI|language model|guidelines|polic(?:y|ies)|content|role.?play|appropriate)\b",
    re.I,
)


class Unfit(Exception):
    """The answer cannot be used; the reason is the message."""


class Speech:
    """One answer on its way from a model to those who listen.

    `told`: what the model was given, and `instructions` what of it is no story. `name`: whose words they are. `in_character`: a
    character may be sorry and decline, as long as it does not sound like an assistant. `most`: the characters after which the answer
    is cut."""

    def __init__(self, told: str, *, instructions: str = "", name: str = "", in_character: bool = False, most: int = 8000) -> None:
        self._told = told.replace("’", "'")
        self._instructions = refusal.runs_of_words(instructions)
        self._own = f"{name.casefold()}:"
        self._in_character = in_character
        self._most = most
        self._text = ""
        self._heard = 0
        self._judged_at = 0
        self._begun = False
        self.over = False
        """Nothing more will be heard: whoever listens can stop."""

    def feed(self, piece: str) -> str:
        """What can be heard now. Raises `Unfit`."""
        if self.over or not piece:
            return ""
        self._text += _CONTROLS.sub("", piece.replace("\r\n", "\n"))
        if not self._begun and not self._begin(whole=False):
            return ""
        ended = self._ended()
        if len(self._text) - self._judged_at > _LOOK_AGAIN:
            self._judge(self._text)
        return self._release(len(self._text) if ended else self._settled())

    def finish(self, *, cut: bool = False) -> str:
        """The rest. `cut`: the model was stopped by its limit, so the last word may be half a word. Raises `Unfit`."""
        if not self._begun and not self._begin(whole=True):
            raise Unfit("it is empty")
        self._text = self._text.rstrip()
        if cut and not self.over and self._text and self._text[-1] not in '.!?…"”»。！？':
            end = max(self._text.rfind(" "), self._text.rfind("\n"))
            self._text = f"{self._text[:end].rstrip(_LOOSE) if end >= max(self._heard, 1) else self._text}…"
        self._judge(self._text)
        return self._release(len(self._text))

    def _begin(self, *, whole: bool) -> bool:
        """Takes off what stands before the words, once there is enough to tell. False while there is not."""
        text = _THOUGHT.sub("", self._text, count=1) if self._text.lstrip().startswith("<") else self._text
        if not whole and (len(text.strip()) < _HEAD or (_MAY_THINK.match(self._text) and "</think" not in self._text)):
            return False
        for before in (_HEADINGS, _LABEL):
            text = text[found.end() :] if (found := before.match(text)) else text.lstrip()
        text = text[len(self._own) :].lstrip() if text.casefold().startswith(self._own) and len(self._own) > 1 else text
        if not text.strip():
            return False
        if _NO_PROSE.match(text):
            raise Unfit("it is markup or JSON, not prose")
        self._text = text
        self._judge(text)
        self._begun = True
        return True

    def _judge(self, text: str) -> None:
        self._judged_at = len(text)
        plain = text.strip().replace("’", "'")
        if not plain:
            raise Unfit("it is empty")
        if refusal.declines(plain, self._told) and (not self._in_character or _ASSISTANT.search(plain[:300])):
            raise Unfit("the model declines")
        if self._instructions & refusal.runs_of_words(plain):
            raise Unfit("it repeats its instructions")
        reason = refusal.unfit(plain, self._told)
        if reason is not None:
            raise Unfit(reason)

    def _ended(self) -> bool:
        """Whether the model has begun to speak for others, or has said more than enough; the text ends there."""
        others = _OTHERS.search(self._text)
        if others is not None:
            self._text = self._text[: max(others.start(), self._heard)].rstrip()
        elif len(self._text) > self._most:
            self._text = f"{self._text[: max(self._text.rfind(' ', 0, self._most), self._heard)].rstrip()}…"
        else:
            return False
        self.over = True
        return True

    def _settled(self) -> int:
        """How far the text will not change any more: to the last whole word, and not into what may become someone else's turn."""
        doubtful = _MAY_BE_OTHERS.search(self._text)
        text = self._text[: doubtful.start()] if doubtful else self._text
        last = max(text.rfind(" "), text.rfind("\n"))
        if len(text) - last > _LONGEST_WORD:
            return len(text) - 1  # a script without spaces
        return len(text[: max(last, 0)].rstrip(_LOOSE))

    def _release(self, to: int) -> str:
        piece = self._text[self._heard : to]
        self._heard = max(self._heard, to)
        return piece
