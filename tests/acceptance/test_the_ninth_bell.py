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

UNDONE = ("under the collar", "knife in his throat", "That was murder", "use the twenty")
"""Words that were taken back."""


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
                    leaked.update((number, seat.id, word) for word in UNDONE if word in text and "stab" in teller.undone)
            brief = (await teller.story.brief("wenna", budget=3000)).text
            leaked.update((number, "brief", secret) for secret in SECRETS if secret in brief and not _knowers(secret, told) >= PARTY)
    assert not leaked
    assert known >= {(secret, seat) for secret, knowers in SECRETS.items() for seats in knowers.values() for seat in seats}
