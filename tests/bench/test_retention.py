"""The retention benchmark on histories made here: the measures, the plain memories, and the command from end to end."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from talekeeper.bench import retained
from talekeeper.bench.evidence import Shown, Together, Verbatim, plain
from talekeeper.bench.histories import load
from talekeeper.bench.memories import LastTurns, Memory, Pieces, PlainSearch
from talekeeper.bench.retained import Cell, Report, Size, Timing, quantile
from talekeeper.bench.retention import Options, run
from talekeeper.cli.app import main
from talekeeper.errors import InvalidInput

THINGS = ("lantern", "sextant", "falcon", "ledger", "bellows", "cradle", "anvil", "harpoon", "mandolin", "sundial")
PLACES = ("Brinewick", "Hollowmere", "Tarn", "Oldgate", "Skerry", "Fenwold", "Quay", "Ashby", "Corrin", "Marsh End")
IDLE = (
    "How have you been, my friend?",
    "So nice to hear from you again!",
    "We should talk more often, you know.",
    "Oh, that is good to hear.",
)


def chat(*, hidden: bool = False) -> dict[str, Any]:
    """A long chat with ten facts in it, and a question about each; `hidden`: small talk, and questions that share no word with it."""
    turns = [
        {
            "id": f"t{n}",
            "speaker": ("Ana", "Ben")[n % 2],
            "time": f"2023-05-{1 + n // 20:02}T10:00",
            "text": IDLE[n % 4] + " And so on." * 4,
        }
        for n in range(400)
    ]
    questions = []
    for n, (thing, place) in enumerate(zip(THINGS, PLACES, strict=True)):
        at = 15 + 30 * n
        said = f"You know, you and your {thing}, you!" if hidden else f"I bought the old {thing} in {place} for {n + 2} crowns."
        turns[at] |= {"said": said, "text": f"{said} [photo: a shop]"}
        asked = "Why did it rain?" if hidden else f"Where did someone buy the {thing}?"
        questions.append({"id": f"q{n}", "question": asked, "evidence": [f"t{at}"], "scored": True})
    questions.append({"id": "trick", "question": "Who flew?", "evidence": ["t0"], "scored": False})
    return {"conversations": [{"id": "c", "turns": turns, "questions": questions}]}


def campaign() -> dict[str, Any]:
    """A campaign in three sessions, each with a summary of two sentences."""
    turns: list[dict[str, Any]] = []
    chunks, facts = [], []
    for n, (thing, place) in enumerate(zip(THINGS, PLACES, strict=True)):
        start = len(turns)
        turns += [
            {"id": f"e{start + i}", "speaker": "MATT", "time": f"episode {n}", "text": "You hear the rain on the roof, and someone laughs."}
            for i in range(12)
        ]
        turns[start + 5]["text"] = f"At the gate of {place} a guard sells you the {thing} at a price."
        turns[start + 6]["text"] = f"The {thing} is cracked, and a merchant named Orrin{n} wants it back before the harvest festival."
        chunks.append({"id": f"k{n}", "story": True, "start": start + 4, "end": start + 7})
        facts.append(
            {"id": f"k{n}.0", "chunk": f"k{n}", "text": f"A guard sells a {thing} at {place}.", "terms": {thing: 5.0}, "scored": False}
        )
        facts.append(
            {
                "id": f"k{n}.1",
                "chunk": f"k{n}",
                "text": "",
                "terms": {"merchant": 3, f"orrin{n}": 6.0, "harvest": 4.0, "festival": 4.0},
                "scored": True,
            }
        )
    return {"turns": turns, "chunks": chunks, "facts": facts}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "locomo.json").write_text(json.dumps(chat()), encoding="utf-8")
    (tmp_path / "crd3.json.gz").write_bytes(gzip.compress(json.dumps(campaign()).encode()))
    return tmp_path


def command(*args: str) -> Result:
    return CliRunner().invoke(main, ["bench", "retention", *args], prog_name="talekeeper", catch_exceptions=False)


# -- the measures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "held"),
    [
        ("[Ana]: I bought the old lantern in Brinewick.\n", True),
        ("[Ana]: I bought\n  | THE OLD — lantern, in Brinewick!\n", True),
        ("I bought an old lantern in Brinewick.", False),
        ("the old lantern in Brinewick", False),
        ("Brinewick bought I in lantern old the", False),
        ("I bought the old lantern in Brinewickshire.", False),
        ("Oni bought the old lantern in Brinewick.", False),
        ("", False),
    ],
)
def test_strict_means_the_same_words_in_the_same_order(context: str, held: bool) -> None:
    said = plain("I bought the old lantern in Brinewick.")
    assert Verbatim((said,)).holds(Shown(context)) is held
    assert Verbatim(("something else", said)).holds(Shown(context)) is held, "one of several is enough"


def test_strict_in_other_scripts_and_with_apostrophes() -> None:
    shown = Shown("[Ана]: Здравствуй, город у моря! It's the café’s door.")
    assert shown.has(plain("ЗДРАВСТВУЙ город"))
    assert shown.has(plain("it's the café’s"))
    assert not shown.has(plain("it"))


def test_a_fact_is_told_where_most_of_its_words_stand_together() -> None:
    fact = Together({"dragon": 3.0, "mill": 3.0, "dawn": 1.0})
    assert fact.holds(Shown("The dragons burned both mills."))
    assert not fact.holds(Shown("A dragon came at dawn."))
    assert not fact.holds(Shown("The dragon " + "sleeps " * 110 + "by the mill.")), "too far apart"
    assert not fact.holds(Shown("dragon " * 9)), "one word does not count twice"
    assert Together({"hors": 1.0, "told": 1.0}).holds(Shown("She told us of the horses.")), "given as stems, or as words"


# -- the plain memories --------------------------------------------------------------------------------------------------


def told(memory: LastTurns) -> LastTurns:
    for thing in THINGS:
        memory.add("Ana", f"I have a {thing}.", "2023-05-08")
    return memory


def test_last_turns_are_the_newest_that_fit() -> None:
    each = Pieces().count("[Ana]: I have a sundial.\n")
    memory = told(LastTurns())
    assert memory.context("lantern", 2 * each + 1).splitlines() == ["[Ana]: I have a mandolin.", "[Ana]: I have a sundial."]
    assert memory.context(None, each - 1) == ""
    assert len(memory.context(None, 10_000).splitlines()) == 10


def test_plain_search_shows_what_has_the_words_and_nothing_else() -> None:
    memory = told(PlainSearch())
    assert memory.context("Who has a falcon and a lantern?", 10_000).splitlines() == ["[Ana]: I have a lantern.", "[Ana]: I have a falcon."]
    assert memory.context("the zeppelin", 10_000) == ""
    assert memory.context(None, 10_000) == told(LastTurns()).context(None, 10_000)


@pytest.mark.parametrize("make", [Memory, PlainSearch, LastTurns])
def test_no_memory_is_over_its_budget(make: Callable[[], Memory]) -> None:
    memory = make()
    try:
        for n in range(120):
            memory.add("Ana", f"{IDLE[n % 4]} {THINGS[n % 10]} {'on ' * (n % 30)}", "2023-05-08T10:00" if n % 2 else None)
        for budget in (20, 60, 200, 700):
            for query in ("Where is the lantern?", None):
                assert Pieces().count(memory.context(query, budget)) <= budget
    finally:
        memory.close()


def test_a_context_over_its_budget_is_no_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LastTurns, "context", lambda self, query, budget: "word " * (budget + 1))
    with pytest.raises(RuntimeError, match="last turns gave a context of 101 tokens under a budget of 100"):
        run(Options(data=folder, suites=("locomo",), budgets=(100,)), lambda _: None)


# -- the data ------------------------------------------------------------------------------------------------------------


def test_what_is_read(folder: Path) -> None:
    (talk,), (play,) = load(folder, ("locomo", "crd3")).values()
    assert (len(talk.turns), len(talk.questions), len(talk.unasked)) == (400, 10, 10)
    assert talk.questions[0].checks == (Verbatim(("i bought the old lantern in brinewick for 2 crowns",)),), "without the caption"
    assert (len(play.turns), len(play.questions), len(play.unasked)) == (120, 10, 10)
    facts, spans = play.questions[0].checks
    assert isinstance(facts, Together)
    assert isinstance(spans, Verbatim)
    assert len(spans.texts) == 4, "of the turns it was made from, those that say something"


def test_words_of_the_cue_are_not_sought(tmp_path: Path) -> None:
    told = campaign()
    told["facts"][0]["text"] = "A merchant sells a lantern at the harvest."
    (tmp_path / "crd3.json").write_text(json.dumps(told), encoding="utf-8")
    (play,) = load(tmp_path, ("crd3",))["crd3"]
    assert len(play.questions) == 9, "two words are no fact"


def test_data_may_lie_in_a_folder_of_its_own(folder: Path) -> None:
    inner = folder / "data" / "dev"
    inner.mkdir(parents=True)
    (folder / "locomo.json").rename(inner / "locomo.json")
    assert list(load(folder / "data", ("locomo", "crd3"))) == ["locomo"], "what is not there is left out, unless it is asked for"
    with pytest.raises(InvalidInput, match=r"no crd3\.json\.gz in"):
        load(folder / "data", ("crd3",))
    (folder / "data" / "test").mkdir()
    (folder / "data" / "test" / "crd3.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidInput, match="has data in dev and in test: name one of them"):
        load(folder / "data", ("locomo",))


def broken(change: Callable[[dict[str, Any]], object]) -> str:
    data = deepcopy(chat())
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "locomo.json: 'conversations' is missing"),
        ('{"conversations": 3}', "locomo.json: 'conversations' should be of type list, and is 3"),
        (
            broken(lambda data: data["conversations"][0]["turns"][7].pop("text")),
            "locomo.json, conversations[0], turns[7]: 'text' is missing",
        ),
        (
            broken(lambda data: data["conversations"][0]["turns"][7].update(speaker=None)),
            "turns[7]: 'speaker' should be of type str, and is None",
        ),
        (broken(lambda data: data["conversations"][0]["turns"].append("x")), "turns[400]: 'id' is missing"),
        (
            broken(lambda data: data["conversations"][0]["questions"][1].update(evidence=["t0", "t999"])),
            "evidence names 't999', which is no turn",
        ),
        (
            broken(lambda data: data["conversations"][0]["questions"][1].update(scored="yes")),
            "'scored' should be of type bool, and is 'yes'",
        ),
    ],
)
def test_bad_data_is_named_by_its_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "locomo.json").write_text(text, encoding="utf-8")
    result = command("--data", str(tmp_path))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_broken_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "crd3.json.gz").write_bytes(gzip.compress(b"{}")[:-9])
    assert "crd3.json.gz' cannot be read" in command("--data", str(tmp_path)).stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--data", "nowhere"], 1, "no directory 'nowhere'"),
        (["--data", "."], 1, "no locomo.json.gz and no crd3.json.gz in '.'"),
        ([], 2, "Missing option '--data'"),
        (["--data", ".", "--budgets", "few"], 2, "write numbers of tokens"),
        (["--data", ".", "--suite", "other"], 2, "'other' is not one of"),
    ],
)
def test_bad_arguments_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], code: int, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    result = command(*args)
    assert result.exit_code == code
    assert message in result.stderr


# -- the command ---------------------------------------------------------------------------------------------------------


def test_the_command_measures_all_memories_in_one_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained, "_MOST_MS", 10_000)  # how fast this machine is now is not the question here
    result = command("--data", str(folder), "--check", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["options"]["budgets"] == [500, 1000, 2000, 4000]
    assert [(size["suite"], size["turns"], size["questions"]) for size in found["suites"]] == [("locomo", 400, 10), ("crd3", 120, 10)]
    strict = {(cell["suite"], cell["memory"], cell["asked"], cell["budget"]): cell.get("strict") for cell in found["cells"]}
    assert strict["locomo", "Talekeeper", "question", 500] == 100
    assert strict["locomo", "plain BM25", "question", 500] == 100
    assert strict["locomo", "last turns", "question", 500] == 0
    assert strict["locomo", "Talekeeper", "nothing", 500] >= 80, "facts are more telling than small talk"
    assert ("locomo", "plain BM25", "nothing", 500) not in strict
    facts = [cell["facts"] for cell in found["cells"] if (cell["suite"], cell["memory"], cell["budget"]) == ("crd3", "Talekeeper", 1000)]
    assert facts[0] == 100
    assert all(timing["p50_ms"] <= timing["p99_ms"] for timing in found["timings"])
    assert {timing["contexts"] for timing in found["timings"] if timing["asked"] == "question"} == {40}
    assert not any(target["missed"] for target in found["targets"])


def test_check_fails_where_a_target_is_missed_and_the_table_says_which(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps(chat(hidden=True)), encoding="utf-8")
    result = command("--data", str(tmp_path), "--suite", "locomo", "--budgets", "200,1000", "--check")
    assert result.exit_code == 1
    assert "LoCoMo: 1 histories, 400 turns, 10 questions" in result.stdout
    assert any(
        line.split()[0] == "MISSED" and "LoCoMo with the question, 1,000 tokens" in line for line in result.stdout.splitlines() if line
    )
    assert "needs a budget of 4,000" in result.stdout
    assert command("--data", str(tmp_path), "--suite", "locomo", "--budgets", "1000").exit_code == 0, "without --check it only tells"


# -- the report ----------------------------------------------------------------------------------------------------------


def report(ours: int, plain: int, last: int, seconds: float) -> Report:
    """A report with so many of 100 found at every budget."""
    cells = []
    for asked, found in (("question", {"us": ours, "plain BM25": plain}), ("nothing", {"us": ours, "last turns": last})):
        for memory, held in found.items():
            for budget in (1000, 4000):
                cell = Cell("locomo", memory, asked, budget)  # type: ignore[arg-type]
                for n in range(100):
                    cell.put("strict", held=n < held)
                cells.append(cell)
    timing = Timing("locomo", "us", "question")
    timing.put(clock=seconds * 2, cpu=seconds)
    return Report(ours="us", cells=tuple(cells), timings=(timing,), sizes=(Size("locomo", 1, 2, 3),))


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        (report(80, 60, 10, 0.005), []),
        (report(71, 60, 10, 0.005), ["with the question, 1,000 tokens"]),
        (report(80, 81, 10, 0.005), ["above plain BM25"]),
        (report(80, 60, 90, 0.005), ["above last turns"]),
        (report(80, 60, 10, 0.011), ["CPU of a context"]),
        (report(10, 5, 5, 0.005), ["with the question, 1,000 tokens", "with nothing asked, 4,000 tokens"]),
    ],
)
def test_a_missed_target_is_named(found: Report, missed: list[str]) -> None:
    lines = found.missed()
    assert len(lines) == len(missed)
    assert all(name in line for name, line in zip(missed, lines, strict=True))


def test_quantiles() -> None:
    times = [n / 1000 for n in range(1, 101)]
    assert quantile(times, 0.5) == pytest.approx(50.5)
    assert quantile(times, 0.99) == pytest.approx(100)
    assert quantile([], 0.5) is None
