"""What a sentence claims, and of whom: what is said plainly, and nothing else."""

from __future__ import annotations

import pytest

from talekeeper.model import Kind, Turn
from talekeeper.summarize.claims import Claim, claims
from talekeeper.summarize.extractive import judged


def claimed(text: str, voice: str = "DM", *, kind: Kind = "said", audience: tuple[str, ...] = ("dm", "a", "b", "c")) -> list[Claim]:
    turn = Turn("t", 1, kind, voice.lower(), voice, text, audience)
    return [claim for claim, _ in claims(judged([turn]), [turn])]


def told(text: str, voice: str = "DM", **more: object) -> list[tuple[str, str, str]]:
    return [(claim.kind, claim.owner, claim.about) for claim in claimed(text, voice, **more)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "voice", "owner"),
    [
        ("Kael is a dwarf from the north who never drinks.", "DM", "Kael"),
        ("This is Captain Nan, queen of the Rookery, and she is nine years old.", "DM", "Captain Nan"),
        ("That is Mother Odalys of the Lamp House, who has lit the shore for fifty years.", "DM", "Mother Odalys of the Lamp House"),
        ("Dorrit, who keeps the Gilded Eel, has put bricks under every table.", "DM", "Dorrit"),
        ("Grist looks at the coins. He has a daughter of that age.", "DM", "Grist"),
        ("I am afraid of deep water.", "Rook", "Rook"),
        ("I can swim, I can read, and I know which of the guards drink.", "Wenna", "Wenna"),
        ("My name is Ilse, and I come from the marsh.", "Ilse", "Ilse"),
        ("I never learned to swim.", "Rook", "Rook"),
        ("Elena ist eine Diebin.", "SL", "Elena"),
        ("Ich habe Angst vor Wasser.", "Borin", "Borin"),
        ("Elena es una ladrona muy conocida en la ciudad.", "DM", "Elena"),
    ],
)
def test_who_or_what_someone_is(text: str, voice: str, owner: str) -> None:
    assert ("trait", owner, "") in told(text, voice)


@pytest.mark.parametrize(
    ("text", "voice"),
    [
        ("Kael is looking at the door.", "DM"),
        ("Kael is in the tavern, at the long table.", "DM"),
        ("Is Kael a dwarf?", "DM"),
        ("I'm in.", "Rook"),
        ("I'm down to fluff.", "Rook"),
        ("I am fond of him.", "Rook"),
        ("A stranger is a friend you have not met.", "DM"),
        ("Roll initiative. I got a 17.", "Rook"),
        ("彼は北の国から来た剣士だ。", "DM"),
    ],
)
def test_what_is_passing_or_asked_or_chatter_is_no_trait(text: str, voice: str) -> None:
    assert not [row for row in told(text, voice) if row[0] == "trait"]


def test_who_is_meant_by_she_must_be_plain() -> None:
    assert claimed("Jory owes Madam Sable 120 crowns. She has a scar, and swears revenge on the thief.", "DM")[1:] == []


def test_everything_that_a_note_says_of_someone_is_lasting() -> None:
    assert told("Rook owns the third house on Mill Lane.", "", kind="note") == [("trait", "Rook", "")]


@pytest.mark.parametrize(
    ("text", "voice", "pair"),
    [
        ("Elena is loyal.", "DM", ("Elena", "us")),
        ("Elena betrays us.", "DM", ("Elena", "us")),
        ("Kael hates Mira.", "DM", ("Kael", "Mira")),
        ("I trust Elena.", "Borin", ("Borin", "Elena")),
        ("I don't trust Elena.", "Borin", ("Borin", "Elena")),
        ("Elena, you betrayed me!", "Borin", ("Elena", "Borin")),
        ("Mira is my oldest friend.", "Borin", ("Mira", "Borin")),
        ("My brother Tomas waits for me in Vell.", "Kael", ("Kael", "Tomas")),
        ("Vale is Corin's brother.", "DM", ("Vale", "Corin")),
        ("Pay him, Borin, and I owe you twelve crowns.", "Elena", ("Elena", "Borin")),
        ("Elena verrät Borin in der Nacht an die Wachen.", "SL", ("Elena", "Borin")),
        ("Елена предала Борина.", "DM", ("Елена", "Борина")),
    ],
)
def test_how_two_stand_to_each_other(text: str, voice: str, pair: tuple[str, str]) -> None:
    assert ("relationship", *pair) in told(text, voice)


@pytest.mark.parametrize(
    ("text", "voice"),
    [("I would trust Elena.", "Borin"), ("Does Elena hate you?", "Borin"), ("If Elena betrays us, we are lost.", "Borin")],
)
def test_what_is_asked_or_only_thought_of_is_no_relationship(text: str, voice: str) -> None:
    assert not [row for row in told(text, voice) if row[0] == "relationship"]


def test_who_is_spoken_to_is_known_where_few_hear_it() -> None:
    [claim] = claimed("You owe Madam Sable 120 crowns.", "", kind="note", audience=("dm", "jory"))
    assert (claim.kind, claim.owner, claim.about, claim.way) == ("relationship", "@dm,jory", "Madam Sable", "debt")
    assert not claimed("You owe Madam Sable 120 crowns.", "DM", audience=("dm", "a", "b", "c"))


@pytest.mark.parametrize(
    ("text", "voice", "owner"),
    [
        ("I swear by my forge that I will ring Old Patience with my own hands.", "Borin", "Borin"),
        ("Sergeant Hob Grist dies on the chain of the Weir.", "DM", "Sergeant Hob Grist"),
        ("Kael swears to Mira that he will return the ring.", "DM", "Kael"),
        ("我发誓要把王冠还给国王。", "艾琳", "艾琳"),
    ],
)
def test_what_matters_and_who_did_it(text: str, voice: str, owner: str) -> None:
    assert ("event", owner, "") in told(text, voice)


@pytest.mark.parametrize(
    ("text", "voice"),
    [("No, I did not promise that.", "Tamsin"), ("Jory, give me your lute.", "Elena"), ("Madam. My friend pays.", "Borin")],
)
def test_what_is_denied_or_done_by_others_is_not_an_event_of_the_speaker(text: str, voice: str) -> None:
    assert not [row for row in told(text, voice) if row[:2] == ("event", voice)]


def test_a_claim_is_no_longer_than_it_may_be() -> None:
    [claim] = claimed("I swear " + "by the old bell and the new, " * 8 + "that I will come back.", "Borin")
    assert len(claim.text.split()) < 60
