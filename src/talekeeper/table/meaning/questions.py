"""Questions as players ask them: of whom, of what, the way there, and what they know themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping

QUESTION = re.compile(
    r"\?|^\W*(?:who|whom|whose|what|whats|where|why|when|how|which|is|are|am|was|were|do|does|did|can|could|will|would|should|have|has)\b",
    re.I,
)
WHO = re.compile(r"\bwho (?:are|is|r) (?:you|u|this|that|he|she|they|there)\b|\bwhat(?:'s| is) your name\b|\byour name\b", re.I)
_NO_THING = (
    r"(?:time|plan|choice|idea|chance|right|reason|problem|question|option|deal|say|word|friend|enem|help|luck|hope|clue|lead|way|feeling)"
)
ONESELF: Mapping[str, re.Pattern[str]] = {
    "carried": re.compile(
        r"\b(?:what (?:am i|are we) (?:carry|hold)ing|(?:what|which|how many) (?:\w+ )?(?:do|have) (?:i|we) (?:have|got|carry)"
        r"|(?:do|have) (?:i|we) (?:still |even |already )?(?:have|got|carry) (?:still )?(?:an?|any|my|our|the|those|that|enough) "
        rf"(?!(?:\w+ ){{0,2}}{_NO_THING})|inventory|how much money"
        r"|(?:what(?:'s| is) in|check|look (?:in|into|through)|search|empty) my (?:bag|pockets?|coat|things))\b", re.I,
    ),
    "sky": re.compile(
        r"\b(?:what time|how late|what day|what hour)\b|\bis it (?:raining|snowing|day|night|late|cold)\b|\bthe weather\b", re.I
    ),
    "owed": re.compile(
        r"\b(?:what|whom?) (?:(?:did|do|have|had) (?:i|we)|(?:i|we)(?: have| had|['’]ve)?)"
        r" (?:promised?|sworn|swear|swore|vow(?:ed)?|owed?)\b"
        r"|\b(?:what (?:is|was|are|were)|do i remember) my (?:word|promises?|vows?|debts?)\b", re.I,
    ),
    "known": re.compile(
        r"\bwhat (?:(?:do|did|have) (?:i|we)|(?:i|we)(?: have|['’]ve)?) (?:know|learn(?:ed|t)?|found out)"
        r"(?: so far| by now| until now| already)?\W*$", re.I,
    ),
    "present": re.compile(r"\bwho (?:else )?is (?:here|there|around|with us)\b|\bwho are (?:these|those|they|all)\b", re.I),
    "self": re.compile(r"\bwho am i\b|\blook at myself\b|\bhow am i\b", re.I),
    "here": re.compile(
        r"\bwhere (?:am i|are we)\b|\bwhat(?:'s| is) (?:this place|here)\b|\bwhat place is this\b|\bwhat do (?:i|we) see\b", re.I
    ),
}  # fmt: skip
OPENING = re.compile(
    r"\bwhat (?:do you|does (?:he|she)|he|she|they|you) wants?\b|\bany news\b|\bwhat (?:has )?happened(?: here)?\W*$"
    r"|\bwhat(?:'s| is) (?:(?:it|this|all this) about|new|going on|wrong|the matter)\b", re.I,
)  # fmt: skip
"""A question that leaves it to the other one what to speak of."""
TOLD_OF = re.compile(
    r"\b(?:know (?:about|of)|heard (?:about|of)|tell me (?:about|of)|what about|(?:ask|talk|speak)\w*\b.* (?:about|of))\b", re.I
)
RETOLD = re.compile(r"\bwhat\b.*\b(?:told|said|confided|confessed|whispered|learned|learnt|heard)\b", re.I)
WANTED = re.compile(r"\b(?:got|have|sell|serve|like|want|need|buy|order)\b", re.I)
WHO_IS = re.compile(r"\bwho(?:'s| is|s)\b", re.I)
WHERE = re.compile(
    r"\bwhere(?:'s|s)?\b|\bhow (?:do|can) (?:i|we) (?:get|find|reach|go)\b|\bwhich way\b|\b(?:find|looking for|look for)\b", re.I
)
SAID_BEFORE = re.compile(
    r"\bwhat (?:else )?(?:did|have|had) (?:i|we) (?:just |ever |already |once )?"
    r"(?:tell|told|say|said|mention(?:ed)?|confess(?:ed)?|whisper(?:ed)?)\b"
    r"|^\W*(?:have|had|did) (?:i|we) (?:just |ever |already |once )?(?:tell|told|mention(?:ed)?|whisper(?:ed)?) (?:to )?\w+ "
    r"|\b(?:do|can|will) you (?:still )?(?:remember|recall) (?:what|that|anything|how|my) "
    r"|\bwhat (?:i|we) (?:have |had |once )?(?:told|said|whispered)\b", re.I,
)  # fmt: skip
"""Somebody is to say what they were told."""
WHISPERED = re.compile(r"\b(?:whisper|confide|confess)|\bin (?:confidence|secret)\b", re.I)
OWN_SECRET = re.compile(
    r"\b(?:my|our) (?:\w+ ){0,2}secrets?\b(?! (?!(?:to|with|about|of|is|that|and|from|in|before)\b)\w)|"
    r"\bmy own (?:secret|truth)\b|\btruth about (?:me|my|myself|us|our)\b|"
    r"\b(?:confess|come clean|own up)(?: to \w+| with \w+)?\W*$", re.I,
)  # fmt: skip
"""What one keeps to oneself, called by its name: no question, but an answer."""
_WORDS = r"(?:[^\w.!?;:]+[\w'’]+){0,4}?[^\w.!?;:]+"
HELD_BACK = re.compile(
    r"\b(?:not|never|cannot|\w+n['’]t|refuse|decline|hesitate|consider|almost|nearly|wish|avoid|without|instead of|rather than|could|might"
    rf"|may|would)\b{_WORDS}(?:tell|told|whisper|confess|confide|say|shar(?:e|ing)|reveal|admit|give|giving|speak|talk)\w*"
    r"|\b(?:but|except)(?: for)? (?:my|our|the) (?:\w+ )?(?:secret|truth)", re.I,
)  # fmt: skip
"""Something is not told, or not yet: no secret is given away by that."""
