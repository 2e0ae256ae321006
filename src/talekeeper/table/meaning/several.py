"""Whether a line has more in it than one thing: some would then get to know what is for others, or for nobody.

The text is as `manners` has it.
"""

from __future__ import annotations

import re
from itertools import pairwise

from talekeeper.table.meaning import manners
from talekeeper.table.meaning.manners import SAID
from talekeeper.table.meaning.verbs import SINGLE

_BY_THE_WAY = frozenset({"look", "wait", "listen", "hint", "play", "rest"})
"""What may go along with words for some, and be passed over."""
_BESIDE = frozenset({"take", "give", "drop", "use", "open"})
"""What is done as well where quotation marks show what is said."""
_DEEDS = frozenset({"take", "steal", "drop", "attack", "break", "burn", "dig", "search", "trade", "open", "hide"})
_LEADS_IN = frozenset({"aside", "apart", "breath", "look", "step", "seat", "moment", "sip", "swig", "hand", "arm"})


def is_question(text: str) -> bool:
    """Whether it asks or exclaims something, and tells nothing."""
    if manners.ASKS.search(text.lstrip()) is None or manners.STILL_TOLD.search(text):
        return False
    return "?" in text or manners.GOES_ON.search(text) is None


def is_secret_later(text: str, begin: int, head: int) -> bool:
    """Whether what is told to one goes over into something that is secret: `I ask Marlo about it and secretly take it.`

    What is said begins at `begin`, and what is told of at `head`."""
    return begin > 0 and any(
        " i " in one[0]
        or (
            (one.start() >= head or SAID in text[begin : one.start("verb")])
            and (is_doing(one["verb"]) or one["verb"] == "to" or manners.SAYS.fullmatch(one["verb"]) is not None)
        )
        for one in manners.MORE_IN_SECRET.finditer(text, begin)
    )


def is_doing(word: str) -> bool:
    """Whether it is a word for something done: `take`, `taking`."""
    stem = word.removesuffix("ing")
    return word in SINGLE or (stem != word and (stem in SINGLE or f"{stem}e" in SINGLE))


def is_done_next(behind: str) -> bool:
    """Whether something is done, and not said, right behind a word for how it is done."""
    verb = next((word for word in behind.split() if word not in ("i", "we", "and", "then")), "")
    return is_doing(verb) and manners.SAYS.fullmatch(verb) is None


def tells_others(text: str, begin: int, to: tuple[str, ...]) -> bool:
    """Whether something is told to others before, or in brackets."""
    told = (one[1] for one in (*manners.SPOKEN_TO.finditer(text, 0, begin), *manners.BRACKETED.finditer(text)))
    return bool(to) and any(set(re.findall(r"@(\w+)", names)) - set(to) for names in told)


def does_before(text: str) -> bool:
    """Whether something is done in what stands before a saying, and not only to get near."""
    words = text.split()
    return any(
        SINGLE.get(word) in _DEEDS and not behind.startswith("@") and not _LEADS_IN & set(words[at + 1 : at + 5])
        for at, (word, behind) in enumerate(pairwise([*words, ""]))
    )


def does_more(text: str, begin: int, head: int, to: tuple[str, ...], *, is_kept_late: bool) -> bool:
    """Whether something is done, or told to others, besides what is told to some or only thought, which begins at `begin`."""
    is_quoted = SAID in text
    is_all_told = text.startswith(" : ", head) and not is_quoted
    for more in manners.MORE.finditer(text, begin):
        joint, verb = text[more.start() : more.start("verb")], more["verb"]
        is_own = " i " in joint
        if verb not in SINGLE or (is_all_told and more.start() >= head and not (is_own and is_kept_late)):
            continue
        if is_quoted and not is_kept_late and SINGLE[verb] in _BESIDE:
            continue
        if joint.lstrip().startswith(",") and head < more.start() and manners.PROVIDED.search(text[head : more.start()]):
            continue
        if not is_own and manners.MEANT_TO.search(text, begin, more.start("verb")):
            continue
        if manners.SAYS.fullmatch(verb):
            behind = more["behind"]
            if set(re.findall(r"@(\w+)", behind)) - set(to) or manners.ALOUD & set(behind.split()):
                return True
        elif SINGLE[verb] not in _BY_THE_WAY:
            return True
    return False
