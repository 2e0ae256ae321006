"""The whole path with a real language model: SmolLM2 in this process, offline, and once more behind a real HTTP server.

A model of 135 million parameters writes no literature. What is tested is that its words come through as speeches, rulings and summaries,
bounded, checked and counted, by the same code that a large one would run through."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import OpenKeeper
from tests.table.cast.asks import KEY, Plain, ask, heard, take_down

import talekeeper as tk
from talekeeper.ports import Spending
from talekeeper.summarize import refusal
from talekeeper.table.cast import Mishap, Model, ModelBrain, Patience, Request, chat, find
from talekeeper.table.cast.hosted import Hosted
from talekeeper.table.cast.local import bounded
from talekeeper.table.cast.models import listen
from talekeeper.table.playing.rounds import Game
from talekeeper.table.playing.seating import Budgets, Setup, begin
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world.commands import command_from_json
from talekeeper.table.world.scenario import Scenario

pytestmark = pytest.mark.timeout(600)
PATIENT = Patience(silence=200, whole=400, attempts=2, pause=0.01)


@pytest.fixture(scope="module")
def model(smollm2: Path) -> Model:
    return find("local:smollm2", context=2048)


async def answer(model: Model, request: Request, patience: Patience) -> str:
    """The whole answer; raises what ends it."""
    async with aclosing(listen(model, request, patience)) as pieces:
        return "".join([piece async for piece in pieces])


# -- speeches and rulings ----------------------------------------------------------------------------------------------


async def test_it_speaks_for_three_and_rules_once(model: Model) -> None:
    """Three speeches by the model itself, and a ruling by schema, with the fallback standing by unheard."""
    seen: list[Mishap] = []
    brain = ModelBrain({"default": model}, Plain(), lengths={"default": 24, "keeper": 220}, patience=PATIENT, notice=seen.append)
    for role in ("dm", "pc", "narrator"):
        pieces = await heard(brain, await ask(role))
        text = "".join(pieces)
        assert len(text.split()) >= 3, text
        assert "The fire burns low." not in text
        assert not refusal.unfit(text, "")
        assert brain.spent[role].tokens_out <= 24 * brain.spent[role].calls
        assert brain.spent[role].tokens_in > 200
    ruling = await brain.rule(await ask("keeper"))
    assert ruling.resolution != "By the rules: it works."
    assert len(ruling.resolution) <= 200
    assert 0 <= ruling.moment_significance <= 1
    for command in ruling.commands:
        command_from_json(command)
    assert not [one for one in seen if one.then != "again"]


async def test_the_same_seed_tells_the_same(model: Model) -> None:
    brain = ModelBrain({"default": model}, lengths={"default": 16}, patience=PATIENT)
    one, again = [await heard(brain, await ask("pc", seed=5)) for _ in range(2)]
    assert one == again


# -- limits ------------------------------------------------------------------------------------------------------------

SHORT = [{"role": "user", "content": "Tell a long story about a fox."}]


async def test_an_answer_that_reaches_its_limit_is_cut_and_says_so(model: Model) -> None:
    spent: list[Spending] = []
    with pytest.raises(tk.ModelFailed, match="reached its limit of 6 tokens") as caught:
        await answer(model, Request(SHORT, max_tokens=6, seed=1, spend=spent.append), PATIENT)
    assert caught.value.cut
    assert spent[0].tokens_out == 6


async def test_closing_the_stream_stops_the_model(model: Model) -> None:
    """A story of 1,500 tokens would take half a minute; the next question does not wait for its end."""
    async with aclosing(listen(model, Request(SHORT, max_tokens=1500, seed=1), PATIENT)) as pieces:
        async for piece in pieces:
            if piece:
                break
    began = time.monotonic()
    with pytest.raises(tk.ModelFailed, match="limit of 3"):
        await answer(model, Request(SHORT, max_tokens=3, seed=1), PATIENT)
    assert time.monotonic() - began < 10


async def test_a_prompt_that_is_too_long_is_refused_for_good(model: Model) -> None:
    with pytest.raises(tk.ModelFailed, match="exceeds the available context size") as caught:
        await answer(model, Request([{"role": "user", "content": "word " * 4000}]), PATIENT)
    assert caught.value.lasting


async def test_several_ask_at_once_and_each_is_answered(model: Model) -> None:
    async def short(seed: int) -> str:
        return "".join([piece async for piece in listen(model, Request(SHORT, max_tokens=12, seed=seed, schema=YES), PATIENT)])

    assert set(await asyncio.gather(*(short(seed) for seed in range(4)))) <= {'"yes"', '"no"'}


YES = {"type": "string", "enum": ["yes", "no"]}


def test_a_schema_has_an_end_to_everything() -> None:
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "words"},
            "list": {"type": "array", "items": {"anyOf": [{"type": "string", "maxLength": 5000}, {"const": "x", "type": "string"}]}},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
        },
    }
    assert bounded(schema, 300) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "text": {"type": "string", "maxLength": 100},
            "list": {
                "type": "array",
                "maxItems": 1,
                "items": {"anyOf": [{"type": "string", "maxLength": 100}, {"const": "x", "type": "string"}]},
            },
            "share": {"enum": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]},
        },
    }


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tk.ModelUnavailable, match="no model at '.*nowhere.gguf' .No such file or directory"):
        find(f"local:{tmp_path / 'nowhere.gguf'}")
    (tmp_path / "text.gguf").write_text("dear diary")
    with pytest.raises(tk.ModelUnavailable, match="is no GGUF file: it begins with b'dear'"):
        find(f"local:{tmp_path / 'text.gguf'}")


async def test_a_damaged_file_fails_for_good_and_takes_nobody_along(tmp_path: Path, smollm2: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(smollm2.read_bytes()[:200_000])
    with pytest.raises(tk.ModelFailed, match="llama.cpp cannot load") as caught:
        await answer(find(f"local:{broken}"), Request(SHORT, max_tokens=3), PATIENT)
    assert caught.value.lasting


def test_one_that_was_not_got_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(tk.ModelUnavailable, match="run talekeeper models get smollm2"):
        find("local:smollm2")


# -- summaries ---------------------------------------------------------------------------------------------------------

TOLD = [
    ("dm", "Mira slides Rook a brass key across the counter of the Drowned Rat and says that room nine is paid for."),
    ("rook", "I promise Mira that I will bring the brass key back before the third bell."),
    ("dm", "Captain Voss pays Rook 40 gold for the map of the mill and keeps Lin's dagger as a pledge."),
    ("lin", "I tell Voss that I want my dagger back tomorrow, and that I will remember his face."),
    ("dm", "The miller is dead. His daughter Oda hides in the cellar and begs Lin to tell nobody where she is."),
    ("lin", "I swear to Oda that nobody will hear it from me, and give her my cloak."),
    ("dm", "At midnight the bell of Saint Orla rings by itself, and the river begins to rise over the old bridge."),
    ("rook", "I run to the bridge with the lantern and shout for the ferryman to cut the ropes."),
]


async def test_a_summary_by_it_passes_the_check_or_is_repaired(open_file: OpenKeeper, model: Model) -> None:
    """Real turns, the real janitor: the fold is the model's, and what must survive is in it, by itself or appended.

    Four answers in ten of so small a model are about something else, and refused; it is asked again."""
    janitor = tk.Janitor(chat(model, max_tokens=160, patience=PATIENT), timeout=400)
    keeper = await open_file(summarizer=janitor, retry=tk.RetryPolicy(attempts=8, pause=0.01, longest=0.01))
    story = await keeper.story(
        KEY, seats=[tk.Seat("dm", role="dm", token_limit=300), *(tk.Seat(one, token_limit=300) for one in ("rook", "lin"))]
    )
    for speaker, text in TOLD * 2:
        await story.append(speaker, text)
    await story.settle()
    health = await story.health()
    assert (health.state, health.summarizer) == (tk.HealthState.HEALTHY, "model"), health.reason
    folds = [fold for fold in await story.folds("rook") if fold.made_by == "model"]
    assert folds
    for fold in folds:
        for name in ("Mira", "Rook", "Voss", "Lin", "Oda"):
            assert name in fold.text
        assert not refusal.refuse(
            " ".join(one.text for one in fold.sentences if not one.text.startswith("Also: ")), [text for _, text in TOLD]
        )
    assert (await story.stats()).model_calls >= 1
    assert len(await story.sources(await story.context("rook"))) == len(TOLD) * 2


# -- behind a server ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(smollm2: Path) -> Iterator[str]:
    """The same model behind a real HTTP server that speaks OpenAI's protocol and wants a key."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(smollm2)
    params.n_ctx, params.n_parallel, params.verbosity = 2048, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.api_keys = ["open sesame"]
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@asynccontextmanager
async def behind(url: str, **settings: Any) -> AsyncIterator[Model]:
    """The model behind that server. Its connections are closed in the end: they belong to this test's event loop."""
    model = find("openai:smollm2", base_url=url, **settings)
    assert isinstance(model, Hosted)
    async with model.model:
        yield model


@pytest.mark.enable_socket
async def test_a_server_that_speaks_openais_protocol_will_do(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALEKEEPER_API_KEY", "open sesame")
    spent: list[Spending] = []
    pieces: list[str] = []
    async with behind(served, temperature=0.2, seed=3) as model:
        with pytest.raises(tk.ModelFailed, match="reached its limit of 12 tokens"):
            await take_down(listen(model, Request(SHORT, max_tokens=12, spend=spent.append), PATIENT), pieces)
        assert len([piece for piece in pieces if piece]) > 4, "it streams"
        assert spent[0].tokens_out == 12
        assert spent[0].tokens_in > 5
        said = await answer(model, Request(SHORT, schema={"type": "object", "properties": {"a": YES}, "required": ["a"]}), PATIENT)
        assert said.replace(" ", "").replace("\n", "") in ('{"a":"yes"}', '{"a":"no"}')


@pytest.mark.enable_socket
async def test_a_wrong_key_is_refused_for_good(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "open barley")
    async with behind(served, key_from="MY_KEY") as model:
        with pytest.raises(tk.ModelFailed, match="401") as caught:
            await answer(model, Request(SHORT, max_tokens=3), PATIENT)
    assert caught.value.lasting


# -- at the table ------------------------------------------------------------------------------------------------------


async def test_it_plays_three_rounds_at_the_table(open_file: OpenKeeper, model: Model) -> None:
    """The real graph, the real rules, and the real model in every part that speaks: three rounds are played and written."""
    keeper = await open_file()
    brains: list[ModelBrain] = []

    def cast(scenario: Scenario) -> ModelBrain:
        models = {"default": model, "keeper": "builtin"}
        brains.append(ModelBrain(models, Storyteller(scenario), lengths={"default": 16}, patience=PATIENT))
        return brains[0]

    setup = Setup(str(Path(__file__).parents[1] / "small.toml"), ("wren",), seed=5)
    table = await begin(keeper, KEY, setup, cast, budgets=Budgets(dm=128, pc=128))
    async with Game(table) as game:
        for number in range(3):
            assert await table.round_now() == number + 1
            beats = [beat async for beat in game.round()]
            assert [beat.role for beat in beats if beat.kind == "end"] == ["dm", "pc", "narrator"]
            assert beats[-1].kind == "done"
    turns = await table.story.turns()
    assert len([turn for turn in turns if turn.kind == "said"]) == 9
    assert {role: cost.calls >= 3 for role, cost in brains[0].spent.items()} == {"dm": True, "pc": True, "narrator": True}
