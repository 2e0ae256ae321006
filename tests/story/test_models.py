"""Folds by models: good, slow, failing, too long, and what a story tells of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from tests.conftest import until
from tests.stories import KEY, SMALL, all_folds, contexts, deed, tell

import talekeeper as tk
from talekeeper.folds.nodes import Node
from talekeeper.ports import Commit, Message
from talekeeper.stores.in_memory import InMemoryStore
from talekeeper.testing.models import MoodyModel, ScriptedModel

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper

QUICK = tk.RetryPolicy(attempts=3, pause=0.001, longest=0.002, recover_after=3600)


async def told_with(open_keeper: OpenKeeper, model: tk.ChatModel, turns: int = 40, **settings: object) -> tk.Story:
    keeper = await open_keeper(summarizer=model, **{"retry": QUICK, "timeout": 0.05, **settings})
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, turns)
    return story


async def is_in(story: tk.Story, state: tk.HealthState) -> bool:
    return (await story.health()).state is state


async def test_model_folds_replace_extractive_ones_once_they_are_there(open_keeper: OpenKeeper) -> None:
    model = MoodyModel()
    story = await told_with(open_keeper, model, 120)
    await story.settle()
    folds = await story.folds("rogue")
    assert folds
    assert {fold.made_by for fold in folds} == {"model"}
    assert {fold.made_by for fold in await all_folds(story, "rogue")} == {"model"}
    health = await story.health()
    assert (health.state, health.pending, health.reason, health.summarizer) == (tk.HealthState.HEALTHY, 0, "", "model")
    assert len(await story.sources(await story.context("rogue"))) == 120


async def test_a_models_citations_are_its_sentences_sources(open_keeper: OpenKeeper) -> None:
    story = await told_with(open_keeper, MoodyModel(), 60)
    await story.settle()
    fold = next(fold for fold in await story.folds("rogue") if fold.level == 0)
    heard = set(await story.sources(fold))
    assert all(set(sentence.sources) <= heard for sentence in fold.sentences)
    assert any(not sentence.estimated and len(sentence.sources) == 1 for sentence in fold.sentences)


async def test_without_citations_sources_are_marked_as_estimated(open_keeper: OpenKeeper) -> None:
    story = await told_with(open_keeper, MoodyModel("uncited"), 60)
    await story.settle()
    fold = next(fold for fold in await story.folds("rogue") if fold.level == 0)
    assert fold.made_by == "model"
    heard = set(await story.sources(fold))
    assert all(sentence.estimated and set(sentence.sources) <= heard for sentence in fold.sentences)


def overheard() -> tuple[tk.ChatModel, list[str]]:
    """A good model, and all that it is asked."""
    asked: list[str] = []
    good = MoodyModel()

    async def model(messages: Sequence[tk.Message]) -> str:
        asked.append(messages[-1]["content"])
        return await good(messages)

    return model, asked


async def test_a_model_is_told_of_every_scene_that_it_sums_up_though_nobody_has_looked_yet(open_keeper: OpenKeeper) -> None:
    model, asked = overheard()
    keeper = await open_keeper(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=400)])
    for day in range(12):
        await story.append_many([tk.Draft("dm", deed(day * 10 + n), location="hall") for n in range(8)])
        await story.append("dm", f"Mira{day} hides {day + 20} crowns under the stone.", location="mill")  # too short for a fold of its own
    await story.settle()
    coarse = [fold for fold in await story.folds("dm") if fold.level]
    scenes = [
        turn.text.split()[0] for fold in coarse for each in await story.sources(fold) if "Mira" in (turn := await story.turn(each)).text
    ]
    assert scenes
    assert [scene for scene in scenes if not any(scene in text for text in asked)] == []


async def test_a_model_is_told_nothing_that_not_all_hearers_of_a_fold_heard(open_keeper: OpenKeeper) -> None:
    model, asked = overheard()
    keeper = await open_keeper(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=SMALL)
    for n in range(1, 121):
        await story.append("dm", f"{'forrogue' if n % 2 else 'forbard'} {deed(n)}", heard_by=["rogue"] if n % 2 else ["bard"])
    await story.settle()
    assert asked
    bardless = [text for text in asked if "forrogue" in text]
    assert bardless
    for seat, word in (("rogue", "forbard"), ("bard", "forrogue")):
        for fold in await story.folds(seat):
            assert word not in fold.text


async def test_coming_back_to_folds_that_a_model_made_costs_no_call(open_keeper: OpenKeeper) -> None:
    model = MoodyModel()
    story = await told_with(open_keeper, model, 120)
    await story.settle()
    calls, head = model.calls, story.head
    assert calls > 0
    await story.settle()
    assert model.calls == calls
    await story.rewind(head - 10)
    await story.settle()
    assert model.calls == calls
    await story.append("dm", "Okay.")
    await story.settle()
    assert model.calls == calls, "a text that was made once is taken again"
    assert {fold.made_by for fold in await story.folds("rogue")} == {"model"}


async def test_contexts_before_a_rewind_come_back_as_they_last_were_with_model_folds(open_keeper: OpenKeeper) -> None:
    story = await told_with(open_keeper, MoodyModel(), 100)
    await story.settle()
    before, head = await contexts(story), story.head
    await tell(story, 100, first=500)
    await story.settle()
    await story.rewind(head)
    assert await contexts(story) == before
    await story.settle()
    assert await contexts(story) == before


async def test_model_texts_survive_in_the_file(open_file: OpenKeeper) -> None:
    model = MoodyModel()
    keeper = await open_file(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 120)
    await story.settle()
    before, calls, stats = await contexts(story), model.calls, await story.stats()
    await keeper.close()
    again = await (await open_file(summarizer=model, retry=QUICK)).story(KEY)
    assert await contexts(again) == before
    await again.settle()
    assert model.calls == calls
    assert await again.stats() == stats


async def test_what_models_cost_is_counted(open_keeper: OpenKeeper) -> None:
    model = MoodyModel()
    story = await told_with(open_keeper, model, 120)
    await story.settle()
    stats = await story.stats()
    assert stats.model_calls == model.calls > 0
    assert stats.model_tokens_in > stats.model_tokens_out > 0
    assert stats.model_failures == 0
    assert stats.model_calls_saved == round(stats.model_calls * stats.folds_shared / stats.folds) > 0, "three seats do not cost three times"
    assert stats.model_tokens_saved > stats.model_calls_saved


REASONS = {
    "failing": "the model is not reachable", "empty": "refused", "garbage": "refused", "too long": "refused", "refusing": "refused", "reciting": "refused",
    "echoing": "it is no shorter than what it was made from", "cut off": "it has a lone surrogate", "nul": "it has a NUL byte",
    "inventing": "it has nothing in common with what it was made from",
    "not text": "NoneType", "slow": "did not answer", "cancelled": "CancelledError",
}  # fmt: skip


@pytest.mark.parametrize("mood", REASONS)
async def test_a_model_in_a_bad_mood_loses_nothing_and_shows_in_health(open_keeper: OpenKeeper, mood: str) -> None:
    plain = await (await open_keeper(":memory:")).story(KEY, seats=SMALL)
    await tell(plain, 120)
    model = MoodyModel(mood)
    story = await told_with(open_keeper, model, 120)
    await story.settle()
    health = await story.health()
    assert health.state is tk.HealthState.DEGRADED
    assert REASONS[mood] in health.reason
    assert health.failures >= 3
    assert health.pending > 0
    assert await contexts(story) == await contexts(plain), "the extractive folds are there"
    assert {fold.made_by for fold in await story.folds("rogue")} == {"extractive"}
    stats = await story.stats()
    assert stats.model_calls == stats.model_failures == model.calls


async def test_a_model_that_answers_with_an_error_is_given_up_like_one_that_does_not_answer(open_keeper: OpenKeeper) -> None:
    asked: list[float] = []

    async def limited(messages: Sequence[Message]) -> str:
        asked.append(asyncio.get_running_loop().time())
        return "Error: rate limit exceeded, please try again later."

    keeper = await open_keeper(":memory:", summarizer=limited, retry=tk.RetryPolicy(attempts=3, pause=0.05))
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 120)
    await story.settle()
    assert (await story.health()).state is tk.HealthState.DEGRADED
    assert len(asked) == 4  # with growing pauses; and one more, in case it was that fold
    assert asked[1] - asked[0] >= 0.04
    assert asked[2] - asked[1] >= 0.09


class _Choosy(InMemoryStore):
    """A store that takes anything but model texts."""

    def __init__(self, error: tk.TalekeeperError) -> None:
        super().__init__()
        self.error: tk.TalekeeperError | None = error

    async def write(self, commit: Commit) -> int:
        if commit.texts and self.error is not None:
            raise self.error
        return await super().write(commit)


@pytest.mark.parametrize("error", [tk.InvalidInput("that cannot be stored"), tk.StoreBusy("locked for too long")])
async def test_a_text_that_the_store_does_not_take_is_a_failed_summary(open_keeper: OpenKeeper, error: tk.TalekeeperError) -> None:
    model, store = MoodyModel(), _Choosy(error)
    keeper = await open_keeper(store, summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 120)
    await story.settle()
    health = await story.health()
    assert health.state is tk.HealthState.DEGRADED
    assert f"could not be stored: {type(error).__name__}: {error}" in health.reason
    assert (await story.stats()).model_calls == model.calls <= 20, "what it has cost is known, and the tries are bounded"
    store.error = None
    await story.settle()
    assert (await story.health()).state is tk.HealthState.HEALTHY
    assert (await story.stats()).model_calls == model.calls


async def test_what_a_model_says_when_it_fails_can_be_stored_and_is_not_long(open_keeper: OpenKeeper) -> None:
    async def model(messages: Sequence[tk.Message]) -> str:
        raise ValueError("half \ud83d a\0 smile " + "x" * 100_000)

    story = await told_with(open_keeper, model, 60)
    await story.settle()
    reason = (await story.health()).reason
    assert reason.startswith("the model failed: ValueError: half ? a smile xxx")
    assert len(reason) < 600
    assert (await story.stats()).model_calls >= QUICK.attempts


async def test_what_was_spent_on_a_story_that_was_rewound_meanwhile_is_counted(open_keeper: OpenKeeper) -> None:
    good = MoodyModel()
    forks: list[tk.Story] = []

    async def model(messages: Sequence[tk.Message]) -> str:
        for fork in forks:
            await fork.rewind(120)  # to where it left its parent: nothing is due there
        return await good(messages)

    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=5)
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 120)
    await story.settle()
    before, fork = good.calls, await story.fork()
    forks.append(fork)
    await tell(fork, 60, first=500)
    await fork.settle()
    assert good.calls > before
    assert (await story.stats()).model_calls == good.calls


@pytest.mark.parametrize("attempts", [1, 4])
async def test_retries_are_bounded_by_the_policy(open_keeper: OpenKeeper, attempts: int) -> None:
    model = MoodyModel("failing")
    policy = tk.RetryPolicy(attempts=attempts, pause=0.001, longest=0.002, recover_after=3600)
    story = await told_with(open_keeper, model, 120, retry=policy)
    await until(lambda: is_in(story, tk.HealthState.DEGRADED))
    await asyncio.sleep(0.05)
    calls = model.calls
    assert attempts <= calls <= attempts + 1, "tried, given up, and one other fold tried, in case it was the fold"
    for n in range(60):
        await story.append("dm", deed(500 + n))
    await asyncio.sleep(0.05)
    assert model.calls == calls, "a model that was given up is left alone until it is time"


@pytest.mark.parametrize("mood", ["garbage", "empty", "refusing"])
async def test_a_model_whose_answers_are_all_refused_is_not_asked_for_every_fold(open_keeper: OpenKeeper, mood: str) -> None:
    model = MoodyModel(mood)
    story = await told_with(open_keeper, model, 600)
    await story.settle()
    health = await story.health()
    assert (health.state, health.pending > 40) == (tk.HealthState.DEGRADED, True)
    assert model.calls < 40
    calls = model.calls
    await tell(story, 30, first=1000)
    await asyncio.sleep(0.05)
    assert model.calls == calls, "a model that was given up is left alone until it is time"


async def test_pauses_between_tries_double_up_to_the_longest(open_keeper: OpenKeeper) -> None:
    policy = tk.RetryPolicy(attempts=9, pause=1, longest=5)
    assert [policy.pause_after(failures) for failures in (1, 2, 3, 4, 5, 2000)] == [1, 2, 4, 5, 5, 5]
    asked: list[float] = []

    async def model(messages: Sequence[tk.Message]) -> str:
        asked.append(time.monotonic())
        raise ConnectionError("gone")

    keeper = await open_keeper(summarizer=model, retry=tk.RetryPolicy(attempts=4, pause=0.04, longest=0.1, recover_after=3600))
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 60)
    await story.settle()
    paused = [later - earlier for earlier, later in pairwise(asked[:4])]
    assert [pause >= least for pause, least in zip(paused, (0.04, 0.08, 0.1), strict=True)] == [True] * 3, paused


async def test_health_goes_from_retry_to_degraded_to_recovering_to_healthy(open_keeper: OpenKeeper) -> None:
    gate = asyncio.Event()
    seen: list[tk.HealthState] = []
    good = MoodyModel()
    story: tk.Story

    async def model(messages: Sequence[tk.Message]) -> str:
        seen.append((await story.health()).state)
        if not gate.is_set():
            raise ConnectionError("gone")
        return await good(messages)

    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=5)
    story = await keeper.story(KEY, seats=SMALL)
    assert (await story.health()).state is tk.HealthState.HEALTHY
    await tell(story, 60)
    await story.settle()
    assert seen[:3] == [tk.HealthState.HEALTHY, tk.HealthState.RETRY, tk.HealthState.RETRY]
    assert (await story.health()).state is tk.HealthState.DEGRADED
    gate.set()
    seen.clear()
    await story.settle()
    assert seen[0] is tk.HealthState.RECOVERING
    assert seen[-1] is tk.HealthState.HEALTHY
    health = await story.health()
    assert (health.state, health.reason, health.failures, health.pending) == (tk.HealthState.HEALTHY, "", 0, 0)


async def test_a_recovering_model_that_fails_again_is_given_up_again(open_keeper: OpenKeeper) -> None:
    model = MoodyModel("failing")
    story = await told_with(open_keeper, model, 60)
    await until(lambda: is_in(story, tk.HealthState.DEGRADED))
    await asyncio.sleep(0.05)
    calls = model.calls
    await story.settle()
    assert (await story.health()).state is tk.HealthState.DEGRADED
    assert calls < model.calls <= calls + 2


async def test_a_given_up_model_is_tried_again_by_itself_and_makes_up_for_what_was_missed(open_keeper: OpenKeeper) -> None:
    model = MoodyModel("failing")
    policy = tk.RetryPolicy(attempts=2, pause=0.001, longest=0.002, recover_after=0.05)
    story = await told_with(open_keeper, model, 60, retry=policy)
    await until(lambda: is_in(story, tk.HealthState.DEGRADED))
    model.mood = "good"
    await until(lambda: is_in(story, tk.HealthState.HEALTHY))

    async def all_made() -> bool:
        return (await story.health()).pending == 0

    await until(all_made)
    await story.append("dm", "The rain stops.")  # models' texts are shown with the next turn that is heard
    assert {fold.made_by for fold in await story.folds("rogue")} == {"model"}


async def test_the_turn_that_makes_a_fold_due_has_it_made(open_keeper: OpenKeeper) -> None:
    model = MoodyModel()
    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=5)
    story = await keeper.story(KEY, seats=SMALL)
    waiting: list[Node] = []
    while not waiting:
        await story.append("dm", deed(story.head))
        waiting = await keeper._residents.folder(story._hot).pending()
        await asyncio.sleep(0.002)  # what was begun before has come to its end
    await until(lambda: model.calls, 5)


@pytest.mark.parametrize("outage", [3, 5])
async def test_a_fold_that_was_given_up_is_made_up_for_when_the_model_has_answered_for_others(open_keeper: OpenKeeper, outage: int) -> None:
    good = MoodyModel()
    failed: list[str] = []

    async def model(messages: Sequence[tk.Message]) -> str:
        asked = messages[1]["content"]
        if len(failed) < outage and asked in (failed or [asked]):
            failed.append(asked)
            raise ConnectionError("overloaded")
        return await good(messages)

    story = await told_with(open_keeper, model, 120)
    await story.settle()
    assert len(failed) >= QUICK.attempts
    assert (await story.health()).state is tk.HealthState.HEALTHY
    for n in range(3):
        await tell(story, 40, first=200 + 40 * n)
        await story.settle()
    assert await story._residents.folder(story._hot).pending(given_up=True) == []
    assert len(failed) == outage


async def test_a_fold_that_poisons_the_model_does_not_hold_up_the_others(open_keeper: OpenKeeper) -> None:
    good = MoodyModel()
    poisoned = 0

    async def model(messages: Sequence[tk.Message]) -> str:
        nonlocal poisoned
        if "mark13x" in messages[1]["content"]:
            poisoned += 1
            raise ValueError("content policy")
        return await good(messages)

    story = await told_with(open_keeper, model, 120)
    await story.settle()
    health = await story.health()
    assert health.state is tk.HealthState.HEALTHY
    assert health.pending == 0
    hands = [fold.made_by for fold in await all_folds(story, "rogue") if fold.level == 0]
    assert hands.count("extractive") == 1
    assert hands.count("model") == len(hands) - 1 > 5
    assert poisoned <= QUICK.attempts + 1


async def test_a_summary_that_forgets_a_name_is_repaired_once_or_completed(open_keeper: OpenKeeper) -> None:
    model = ScriptedModel(lambda messages: "Someone counted coins on a table while rain came down from the hills. [1]")
    keeper = await open_keeper(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=SMALL)
    for n in range(1, 61):
        await story.append("dm", deed(n), mentions=["Captain Voss"])
    await story.settle()
    leaf = (await all_folds(story, "rogue"))[-1]
    assert (leaf.level, leaf.made_by) == (0, "model")
    assert "Captain Voss" in leaf.text
    repairs = [messages for messages in model.asked if len(messages) == 4]
    assert repairs
    assert "Captain Voss" in repairs[0][-1]["content"]
    assert all(len(messages) in (2, 4) for messages in model.asked)


async def test_a_hanging_model_never_blocks_append_or_context(open_keeper: OpenKeeper) -> None:
    model = MoodyModel("slow")
    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=30)
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 60)
    await until(lambda: model.calls)  # it is hanging
    longest = 0.0
    for n in range(40):
        start = time.perf_counter()
        await story.append("dm", deed(100 + n))
        await story.context("rogue")
        await story.recall("rogue", "silver coins")
        longest = max(longest, time.perf_counter() - start)
    await story.rewind(80)
    await story.edit(70, "Edited while it hangs.")
    assert longest < 2.0, f"one turn took {longest:.2f} s"


async def test_a_model_that_cannot_be_cancelled_blocks_nobody_either(open_keeper: OpenKeeper) -> None:
    release = asyncio.Event()

    async def model(messages: Sequence[tk.Message]) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "Too late."

    story = await told_with(open_keeper, model, 60)
    start = time.perf_counter()
    await story.settle()
    assert time.perf_counter() - start < 5.0
    assert (await story.health()).state is tk.HealthState.DEGRADED
    release.set()


async def test_turns_that_arrive_while_a_fold_is_made_are_kept_in_order(open_keeper: OpenKeeper) -> None:
    good = MoodyModel()

    async def model(messages: Sequence[tk.Message]) -> str:
        await asyncio.sleep(0.002)
        return await good(messages)

    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=5)
    story = await keeper.story(KEY, seats=SMALL)

    async def talk(first: int) -> None:
        for n in range(first, first + 40):
            await story.append("dm", deed(n))
            await asyncio.sleep(0)

    await asyncio.gather(talk(1), talk(1000), story.settle(), talk(2000))
    await story.settle()
    assert len(await story.turns()) == 120
    context = await story.context("rogue")
    assert len(await story.sources(context)) == 120
    health = await story.health()
    assert (health.state, health.pending) == (tk.HealthState.HEALTHY, 0)
