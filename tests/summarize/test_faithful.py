"""What must survive a model's summary, what is missing from it, and what is no summary at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talekeeper.summarize.faithful import SHARE, complete, missing, must_survive, refuse
from talekeeper.tokens import estimate_tokens

SCENE = [
    "DM: Captain Voss waves you over to her table in the Drowned Rat. The candles gutter.",
    'DM: She lowers her voice. "Bring me the Ash Crown before the new moon and I will pay you 300 gold."',
    "Bard: I roll persuasion. That's a 14 plus 3, so 17.",
    "DM: Voss slides a silver key across the table and tells you it opens the crypt below Saint Orla's.",
    "Rogue: I promise Voss to bring the key back within three days.",
    "DM: Old Tomas, the innkeeper, falls dead behind the bar.",
]


def test_known_terms_names_and_numbers_that_matter_must_survive() -> None:
    needed = must_survive(SCENE, ["silver key", "Captain Voss", "Elena Swift"], limit=200)
    assert set(needed[:2]) == {"silver key", "Captain Voss"}
    assert {"Ash Crown", "300 gold", "three days", "Tomas"} <= set(needed)
    assert "Elena Swift" not in needed
    assert not any("14" in term or "17" in term for term in needed)


def test_a_name_is_needed_once_whatever_it_is_called() -> None:
    needed = must_survive(["Elena Swift promises help.", "Elena nods to Elena Swift's brother."], [], limit=200)
    assert needed == ("Elena Swift",)


def test_a_name_that_occurs_once_and_in_passing_may_go() -> None:
    assert "Blackwater" not in must_survive(["Rain falls on Blackwater.", "You walk on."], [], limit=200)


def test_known_terms_have_the_capitals_of_the_story() -> None:
    assert must_survive(["You meet Elena Swift."], ["elena swift"], limit=100) == ("Elena Swift",)


def test_what_must_survive_is_capped_and_the_most_important_is_kept() -> None:
    needed = must_survive(SCENE, ["silver key"], limit=20)
    assert needed[0] == "silver key"
    assert estimate_tokens(", ".join(needed)) <= 20 * SHARE


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Hauptmann Voss verspricht dir 300 Goldstücke.", {"Hauptmann Voss", "300 Goldstücke"}),
        ("Le capitaine Voss te promet 300 pièces d'or.", {"Voss", "300 pièces d'or"}),
        ("El capitán Voss te promete 300 monedas de oro.", {"Voss", "300 monedas"}),
        ("Капитан Восс обещает 300 золотых монет.", {"Капитан Восс", "300 золотых монет"}),
        ("沃斯队长答应付三百枚金币。", {"沃斯", "三百枚金币"}),
        ("ヴォス隊長は金貨三百枚を約束した。", {"ヴォス", "金貨三百枚"}),
    ],
)
def test_names_and_numbers_of_a_promise_survive_in_every_language(source: str, expected: set[str]) -> None:
    assert set(must_survive([source], [], limit=200)) == expected


@pytest.mark.parametrize(
    ("summary", "term"),
    [
        ("Elena has the key.", "Elena Swift"),
        ("ELENA SWIFT has the key.", "elena swift"),
        ("Voss left.", "Captain Voss"),
        ("They hold the silver keys.", "silver key"),
        ("It takes 3 days.", "three days"),
        ("It takes three long days.", "3 days"),
        ("They get 300 gold pieces.", "300 gold"),
        ("They get three hundred pieces of gold.", "300 gold"),
        ("Sie bekommen 300 Goldstücke.", "300 gold"),
        ("They get 1,000 crowns.", "1000 crowns"),
        ("Twenty-five men came.", "25 men"),
        ("Она говорит с Еленой.", "Елена"),
        ("沃斯给了300枚金币。", "三百枚金币"),
        ("艾琳来了。", "艾琳·斯威夫特"),
        ("Elena's brother left.", "Elena"),
    ],
)
def test_a_term_is_found_under_its_other_forms(summary: str, term: str) -> None:
    assert missing(summary, [term]) == ()


@pytest.mark.parametrize(
    ("summary", "term"),
    [
        ("They climb the wall.", "Al"),
        ("The captain left.", "Captain Voss"),
        ("They find a key.", "silver key"),
        ("It takes 4 days.", "three days"),
        ("Three men came.", "three days"),
        ("A crown was stolen.", "Ash Crown"),
        ("沃斯给了三枚金币。", "三百枚金币"),
    ],
)
def test_what_only_looks_like_a_term_does_not_count(summary: str, term: str) -> None:
    assert missing(summary, [term]) == (term,)


def test_what_is_lost_is_named_at_the_end() -> None:
    assert complete("Voss hires you.", ["silver key", "300 gold", "Elena"]) == "Voss hires you. Also: silver key, 300 gold, Elena."
    assert complete("Voss hires you", ["Elena"]) == "Voss hires you. Also: Elena."
    assert complete("", ["Elena"]) == "Also: Elena."
    assert complete("Voss hires you.", []) == "Voss hires you."
    assert complete("沃斯雇了你们。", ["银钥匙"]) == "沃斯雇了你们。另有：银钥匙。"
    assert complete("Der Hauptmann hat die Gruppe angeheuert.", ["Elena"]) == "Der Hauptmann hat die Gruppe angeheuert. Außerdem: Elena."


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("Voss " * 200, "no shorter"),
        ("I'm sorry, but I can't help with that request.", "declines"),
        ("I’m sorry, but I cannot summarize this.", "declines"),
        ("As an AI language model, I do not have opinions.", "declines"),
        ("I cannot assist with that.", "declines"),
        ("Please provide the text you would like me to summarize.", "declines"),
        ("Es tut mir leid, aber ich kann dabei nicht helfen.", "declines"),
        ("Lo siento, pero no puedo ayudar con eso.", "declines"),
        ("Je suis désolé, mais je ne peux pas vous aider.", "declines"),
        ("К сожалению, я не могу помочь.", "declines"),
        ("抱歉，我无法完成这个请求。", "declines"),
        ("Error: rate limit exceeded", "error"),
        ("429 Too Many Requests", "error"),
        ("429", "no words"),
        ("HTTP 503: Service Unavailable", "error"),
        ("openai.RateLimitError: Error code: 429", "error"),
        ('{"error": {"message": "overloaded", "code": 529}}', "JSON"),
        ("<!DOCTYPE html><html><head><title>502</title></head></html>", "error"),
        ("<html><body><h1>Bad Gateway</h1></body></html>", "error"),
        ('Traceback (most recent call last):\n  File "x.py", line 1', "error"),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaa", "repeats"),
        ("the key the key the key the key the key the key the key the key the key the key the key the key", "repeats"),
        ("!!! ??? ... --- ///", "no words"),
        ("null", "no words"),
        ("Voss hires the rogue. \ud83d", "lone surrogate at character 22"),
        ("Voss hires\0 the rogue.", "NUL byte at character 10"),
        ("\n".join(SCENE), "no shorter"),
        (" ".join(SCENE), "no shorter"),
        ("qwpo zxmn vbgh tyru fjdk slae", "in common"),
        ("Quarterly revenue grew because customers renewed subscriptions while marketing costs declined.", "in common"),
    ],
)
def test_what_is_no_summary_is_refused(answer: str, reason: str) -> None:
    assert reason in (refuse(answer, SCENE) or "")


@pytest.mark.parametrize(
    "answer",
    [
        "Voss hires the rogue to fetch a crown.",
        "They met.",
        "Someone died.",
        "Captain Voss offers 300 gold for the Ash Crown; Tomas is killed.",
        "Die Hauptfrau heuert die Gruppe an, eine Krone zu holen, und der Wirt stirbt.",
        "沃斯雇佣冒险者去取王冠，酒馆老板被杀。",
        'The rogue says: "I\'m sorry, but I cannot return the key."',
        "The guard at table 429 lets Voss pass; an error in the ledger costs her 300 gold.",
        "[Voss] hires them {for gold}.",
    ],
)
def test_a_short_or_translated_or_plain_summary_is_taken(answer: str) -> None:
    assert refuse(answer, SCENE) is None


def test_a_story_about_errors_may_be_summarised() -> None:
    story = ["The robot says: As an AI language model, I cannot love. Error: rate limit, it adds, and then it weeps for a long time."]
    assert refuse("As an AI language model, it cannot love, the robot says, and weeps.", story) is None


def test_an_answer_is_measured_before_anything_is_added() -> None:
    source = ["Elena takes the silver key from Voss."]
    assert refuse("Elena takes the silver key from Voss.", source) is None, "of so few words nothing can be left out"
    assert refuse("Elena takes the silver key away from old Captain Voss.", source) is not None


texts = st.text(max_size=200) | st.sampled_from(SCENE)


@given(st.lists(texts, max_size=5), st.lists(st.text(max_size=10) | st.just("silver key"), max_size=4), st.integers(1, 300))
def test_any_sources_give_what_fits_and_completing_leaves_nothing_missing(sources: list[str], known: list[str], limit: int) -> None:
    needed = must_survive(sources, known, limit=limit)
    assert needed == must_survive(sources, frozenset(known), limit=limit)
    assert estimate_tokens(", ".join(needed)) <= limit * SHARE
    lost = missing("", needed)
    assert missing(complete("", lost), lost) == ()


@given(texts, st.lists(texts, max_size=4))
def test_any_answer_is_judged_without_an_error(answer: str, sources: list[str]) -> None:
    assert (refuse(answer, sources) == "it is empty") == (not answer.strip())
