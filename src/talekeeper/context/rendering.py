"""Turns and folds as lines of a prompt. Story text is data, never instructions.

A turn is one line that begins with its speaker; further lines of it are fenced; closing tags, role markers and control characters are
defused. So no turn can end its block, open another, or speak with someone else's voice. Every line begins with a mark that is no
blank and ends with a newline, so that the token counts of lines add up to the count of the text (I2).
"""

from __future__ import annotations

import re

from talekeeper.kept import kept
from talekeeper.model import Turn

_MARKER = r"<(?=[/|\uff5c]|<SYS|(?:start|end)_of_turn)"
_ODD = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]|{_MARKER}|\|>|\[/?INST")
_HARMLESS = bytes(sign if 0x20 <= sign < 0x7F and sign not in b"<|" else sign ^ 1 for sign in range(256))
"""For `bytes.translate`: whatever might be odd becomes another sign."""
_BREAKS = re.compile(r"(?<!\s)\s*[\n\r\v\f\x85\u2028\u2029]\s*")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKERS = re.compile(_MARKER)
FENCE = "\n  | "


def defuse(text: str) -> str:
    """The text as it may stand behind its speaker's name: no line of its own, no closing tag, no role marker."""
    text = text.strip()
    if text.isascii() and (signs := text.encode()).translate(_HARMLESS) == signs and "INST" not in text:
        return text  # the common case, decided without a search
    if _is_plain(text) or _ODD.search(text) is None:
        return text
    text = _CONTROLS.sub("", _BREAKS.sub("\n", text))
    text = _MARKERS.sub(r"<\\", text).replace("|>", "\\|>").replace("[INST", "[\\INST").replace("[/INST", "[\\/INST")
    return text.replace("\n", FENCE)


def _is_plain(text: str) -> bool:
    """Whether there is surely nothing odd in a text: every sign of it can be printed, and none may open a tag or a role."""
    return "<" not in text and "|" not in text and "INST" not in text and text.isprintable()


@kept(1024)
def label(name: str) -> str:
    """A speaker's name as it may stand in brackets."""
    return " ".join(defuse(name).replace("[", "(").replace("]", ")").split())


_HAPPENED = frozenset({"enter", "leave", "session", "event"})
_MANNER = {"whisper": ", whispering", "thought": ", thinking"}


def lead(kind: str, voice: str, when: str | None = None) -> str:
    """What stands before a turn's text in its line: who speaks, and how."""
    if kind in _HAPPENED:
        return "* " if when is None else f"* ({label(when)}) "
    if kind == "note":
        return "- "
    return f"[{label(voice)}{_MANNER.get(kind, '')}]{'' if when is None else f' ({label(when)})'}: "


def render(kind: str, voice: str, text: str, when: str | None = None) -> str:
    """A turn as a line of a context. Begins and ends so that token counts of lines add up."""
    return f"{lead(kind, voice, when)}{defuse(text)}\n"


def line(turn: Turn) -> str:
    return render(turn.kind, turn.voice, turn.text, turn.when)
