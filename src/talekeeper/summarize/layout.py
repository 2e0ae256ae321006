"""Markdown in a turn: headings and rules are no sentences, and the row of a table is one, whatever stands in its cells."""

from __future__ import annotations

from itertools import pairwise

from talekeeper.summarize.words import Pattern

_LAID_OUT = ("#", "|", "**", "==", "--", "__")
_HEADING = Pattern(r"\s{0,3}#{1,6}\s.*|\s*(\*\*|__)(?=\S)[^*_\n]*[^*_\n.!?…。！？,;]\1:?\s*")
"""A line that is one: behind number signs, or all of it in bold, without the end of a sentence."""
_TITLE_WORDS = 6
"""A heading in bold has so many words at most: more are told."""
_RULE = Pattern(r"\s*(?:[-*_=]\s*){3,}")
_UNDERLINE = Pattern(r"\s*={3,}\s*")


def without_layout(text: str) -> str:
    """The text without headings, rules and the heads of tables; each row of a table is a line that begins and ends with a bar. The text as
    it is, if nothing else is in it."""
    if "\n" not in text or not any(sign in text for sign in _LAID_OUT):
        return text
    lines, table = list[str](), False
    for line, below in pairwise([*text.split("\n"), ""]):
        separates = _separates(line)
        heads = "|" in line and _separates(below)
        table = separates or (table and "|" in line)
        if separates or heads or _RULE.fullmatch(line) or _is_heading(line) or (line.strip() and _UNDERLINE.fullmatch(below)):
            lines.append("")
        elif table or line.lstrip().startswith("|"):
            cells = line.strip().strip("|").strip()
            lines.append(f"| {cells} |" if cells.strip("| ") else "")
        else:
            lines.append(line)
    return "\n".join(lines).strip("\n") if any(map(str.strip, lines)) else text


def _separates(line: str) -> bool:
    """Whether it is what stands below the head of a table."""
    return "|" in line and "-" in line and not line.strip("|-: \t")


def _is_heading(line: str) -> bool:
    return _HEADING.fullmatch(line) is not None and ("#" in line or len(line.split()) <= _TITLE_WORDS)


def bare(sentence: str) -> str:
    """A row without the bars around it."""
    return sentence.strip("| ") or sentence if sentence[0] == "|" else sentence
