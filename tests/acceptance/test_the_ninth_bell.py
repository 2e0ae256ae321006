"""A long story, told from its script: what each seat remembers of it, word for word, and what must and must not be there.

The golden files are for reading: is this what that character knows? `TALEKEEPER_REFRESH_GOLDEN=1` in the environment writes them
anew. What is asserted beside them holds whatever they say.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.acceptance.tale import Teller, read_tale
from tests.conftest import NOW

import talekeeper as tk

SEATS = (
    tk.Seat("dm", role="dm"),
    tk.Seat("elena", name="Elena", aliases=("Elena Swift",)),
    tk.Seat("borin", name="Borin", aliases=("Borin Ashhand",)),
    tk.Seat("tamsin", name="Tamsin", aliases=("Tamsin Reed", "Sister Tamsin", "Tam")),
    tk.Seat("jory", name="Jory", aliases=("Jory Quill",)),
    tk.Seat("odalys", role="npc", name="Odalys", aliases=("Mother Odalys",)),
    tk.Seat("grist", role="npc", name="Grist", aliases=("Sergeant Grist", "Hob Grist")),
    tk.Seat("crane", role="npc", name="Crane", aliases=("Magistrate Crane", "Ansel Crane")),
    tk.Seat("pip", role="npc", name="Pip"),
    tk.Seat("wenna", role="npc", name="Wenna", aliases=("Wenna Grist",)),
)
KEY = tk.MemoryKey("tests", "tests", "the-ninth-bell")
TALE = read_tale("the_ninth_bell")
STAGES = (20, 50, 150, 300)
BUDGETS = (500, 2000, 8000)
GOLDEN = Path(__file__).with_name("golden")
REFRESH = os.environ.get("TALEKEEPER_REFRESH_GOLDEN") == "1"

Remembered = Mapping[tuple[str, int, int], tk.Context]
"""Contexts by seat (or "brief", for a newcomer), by how many beats were told, and by budget."""


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def remembered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Remembered:
    """What everyone remembers at each stage, on each store."""
    target = ":memory:" if request.param == "memory" else str(tmp_path_factory.mktemp("tale") / "tale.db")
    return asyncio.run(_remember(target))


async def _remember(target: str) -> Remembered:
    contexts: dict[tuple[str, int, int], tk.Context] = {}
    async with tk.open(target, counter=tk.Heuristic(), clock=lambda: NOW, durable=False) as keeper:
        teller = Teller(await keeper.story(KEY, seats=SEATS))
        for beat in TALE:
            await teller.tell(beat)
            if teller.told in STAGES:  # again after what the author does at that point
                for budget in BUDGETS:
                    contexts["brief", teller.told, budget] = await teller.story.brief("wenna", budget=budget)
                    for seat in SEATS:
                        contexts[seat.id, teller.told, budget] = await teller.story.context(seat.id, budget=budget)
    return contexts


def _page(remembered: Remembered, who: str, stage: int) -> str:
    """One golden file: a seat's memory at a stage under each budget."""
    parts, before = [], ""
    for budget in BUDGETS:
        context = remembered[who, stage, budget]
        same = context.text == before
        parts.append(f"======== {who} after {stage} beats, {context.tokens} of {budget} tokens{', as above' if same else ''}\n")
        parts.append("" if same else context.text)
        before = context.text
    return "".join(parts)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("who", [*(seat.id for seat in SEATS), "brief"])
def test_each_remembers_what_the_golden_file_says(remembered: Remembered, who: str, stage: int) -> None:
    file = GOLDEN / f"{who}-{stage}.txt"
    page = _page(remembered, who, stage)
    if REFRESH:
        GOLDEN.mkdir(exist_ok=True)
        file.write_bytes(page.encode())
    assert page.encode() == file.read_bytes()


def test_nothing_is_over_its_budget(remembered: Remembered) -> None:
    assert len(remembered) == (len(SEATS) + 1) * len(STAGES) * len(BUDGETS)
    for (who, stage, budget), context in remembered.items():
        assert context.tokens == tk.Heuristic().count(context.text) <= budget, (who, stage)


# --- what must not be there ------------------------------------------------------------------------------------------

PARTY = {"elena", "borin", "tamsin", "jory"}
SECRETS: Mapping[str, Mapping[str, set[str]]] = {
    "Lisbet": {"": {"jory"}, "deal": {"crane"}, "confession": {"elena", "tamsin"}, "tells-borin": {"borin", "odalys", "wenna", "pip"}},
    "green wax": {"wax": {"jory", "crane"}, "found": {"elena", "tamsin"}},
    "heron": {"wax": {"jory", "crane"}, "found": {"elena", "tamsin"}},
    "sold them the night": {"confession": {"jory", "elena", "tamsin"}},
    "sell the night": {"sold": {"jory", "crane"}},  # as its moment has it
    "betrayal from Borin": {"pact": {"jory", "elena", "tamsin"}},
    "green seal": {"tells-borin": {*PARTY, "odalys", "wenna", "pip"}},
    "brass key": {"brass": {"elena", "odalys"}, "opens": {"tamsin"}},
    "opened the sluice": {"vision": {"tamsin"}, "tells-all": {*PARTY, "odalys", "wenna", "pip"}},
}
"""Words that are secrets, with those who know them: from the start (""), and from the turn of that name on. The DM knows everything."""

UNDONE = {
    "under the collar": "stab", "knife in his throat": "stab", "That was murder": "stab", "use the twenty": "stab",
    "will pay you 200 crowns": "charge",
}  # fmt: skip
"""Words that were taken back or written anew, with the turn at which that was done."""


def _knowers(secret: str, told: set[str]) -> set[str]:
    return {"dm"}.union(*(seats for label, seats in SECRETS[secret].items() if not label or label in told))


async def test_at_every_turn_each_knows_the_secrets_they_heard_and_no_others() -> None:
    async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: NOW) as keeper:
        teller = Teller(await keeper.story(KEY, seats=SEATS))
        leaked, known = set[tuple[int, str, str]](), set[tuple[str, str]]()
        for number, beat in enumerate(TALE):
            await teller.tell(beat)
            told = set(teller.labels)
            for seat in SEATS:
                for budget in (500, 3000):
                    text = (await teller.story.context(seat.id, budget=budget)).text
                    found = {secret for secret in SECRETS if secret in text}
                    known.update((secret, seat.id) for secret in found)
                    leaked.update((number, seat.id, secret) for secret in found if seat.id not in _knowers(secret, told))
                    leaked.update((number, seat.id, word) for word, label in UNDONE.items() if word in text and label in teller.undone)
            brief = (await teller.story.brief("wenna", budget=3000)).text
            leaked.update((number, "brief", secret) for secret in SECRETS if secret in brief and not _knowers(secret, told) >= PARTY)
    assert not leaked
    assert known >= {(secret, seat) for secret, knowers in SECRETS.items() for seats in knowers.values() for seat in seats}


# --- what must be there ----------------------------------------------------------------------------------------------

OATH, VOW, CHARGE = (
    "I will ring Old Patience with my own hands",
    "Whoever sold us at the Weir, I will put him in this lake",
    "pay you 300 crowns",
)
BOAT, BERTH, WARD = "I owe you twelve crowns", "I promise you a berth on the Marigold, Pip", "Wenna shall have a roof and a name and bread"
DEAD, KEY_GIVEN = "Hob Grist dies on the chain of the Weir", "Grist gave me the key"
BOUGHT, GREEN = "Crane bought my debt from Sable, a hundred and twenty crowns", "Elena finds the green wax and the note"
BRASS, CAST = "presses a brass key into her palm", "I will cast Little Grief anew"
FACTS = [
    ("elena", 20, 500, ["has put bricks under the legs of every table", "stolen a silver spoon"]),
    ("borin", 50, 500, [CHARGE, OATH, "before Candlemas"]),
    ("jory", 50, 500, [CHARGE, OATH, "owes Madam Sable 120 crowns"]),
    ("jory", 150, 500, [CHARGE, OATH, BOAT, "You owe Madam Sable one hundred and twenty crowns", "Jory agrees to sell the night"]),
    ("jory", 150, 2000, ["I promise you every penny of it", BERTH, "your sister Lisbet walks out", "stick of green wax", "silver clapper"]),
    ("elena", 150, 500, [CHARGE, OATH, BOAT, BERTH]),
    ("elena", 150, 2000, [BRASS, "Magistrate Crane's counting house", "hangs a clapper"]),
    ("odalys", 150, 500, [CHARGE, OATH, BRASS]),
    ("borin", 300, 500, [OATH, BOAT, VOW, CAST, DEAD, "Sergeant Grist dies", "Eighty crowns remain"]),
    ("borin", 300, 2000, [OATH, BOAT, VOW, DEAD, CAST, WARD, BERTH, CHARGE, KEY_GIVEN, "one hundred and twenty crowns", "Little Grief"]),
    ("elena", 300, 500, [OATH, BOAT, BERTH, CHARGE, BOUGHT, GREEN, "Sergeant Grist dies"]),
    ("elena", 300, 2000, [OATH, BOAT, CHARGE, BOUGHT, GREEN, DEAD, VOW, WARD, BERTH, "Then Borin doesn't learn it"]),
    ("elena", 300, 8000, ["I sold them the night"]),
    ("tamsin", 300, 500, [OATH, BOAT, BOUGHT, GREEN, "Sergeant Grist dies"]),
    ("tamsin", 300, 2000, [OATH, CHARGE, BOUGHT, DEAD, VOW, WARD, BERTH, "Wenna"]),
    ("jory", 300, 500, [OATH, BOUGHT, VOW, "Sergeant Grist dies"]),
    ("jory", 300, 2000, ["I promise you every penny of it"]),
    ("dm", 300, 500, [OATH, CHARGE, BOAT, "Jory agrees to sell the night", "Sergeant Grist dies"]),
    ("dm", 300, 2000, [OATH, CHARGE, BOAT, BERTH, WARD, VOW, DEAD, BOUGHT, "Odalys opened the sluice herself"]),
    ("crane", 300, 500, ["Lisbet", "one hundred and twenty crowns", "Shoot the man on the chain"]),
    ("pip", 300, 500, [BERTH, CHARGE, BOAT]),
    ("brief", 300, 500, [OATH, CHARGE, BOAT, VOW]),
    ("brief", 300, 2000, [OATH, CHARGE, BOAT, VOW, BERTH, WARD, DEAD, KEY_GIVEN]),
    *((seat, 300, 8000, [OATH, CHARGE, BOAT, BERTH, WARD, VOW, DEAD, KEY_GIVEN]) for seat in ("dm", "elena", "borin", "tamsin", "jory")),
]  # fmt: skip


@pytest.mark.parametrize(("who", "stage", "budget", "facts"), FACTS, ids=[f"{who}-{stage}-{budget}" for who, stage, budget, _ in FACTS])
def test_a_reader_finds_what_that_character_must_know(remembered: Remembered, who: str, stage: int, budget: int, facts: list[str]) -> None:
    text = remembered[who, stage, budget].text
    assert [fact for fact in facts if fact not in text] == []


@pytest.mark.parametrize("word", ["natural 20", "Perception 9", "crisps", "noodles", "bathroom", "the bus just did", "Roll ", "Elena 15"])
def test_dice_and_table_talk_are_forgotten_first(remembered: Remembered, word: str) -> None:
    for (who, stage, budget), context in remembered.items():
        story = context.block("story")
        folded = "".join(item.text for item in story.items if item.kind != "turn") if story else ""
        assert word not in folded, (who, stage, budget)


def test_mere_coming_and_going_takes_no_room_in_what_is_remembered(remembered: Remembered) -> None:
    for (who, stage, budget), context in remembered.items():
        for item in (item for block in context.blocks if block.name == "story" for item in block.items if item.kind != "turn"):
            assert " leaves " not in item.text, (who, stage, budget)
            assert " comes to " not in item.text, (who, stage, budget)
