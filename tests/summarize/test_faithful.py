"""What must survive a model's summary, what is missing from it, and what is no summary at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talekeeper.summarize.faithful import SHARE, complete, missing, must_survive, strange_numbers
from talekeeper.summarize.refusal import refuse
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


def test_a_number_must_survive_with_what_it_counts_and_nothing_twice() -> None:
    told = [
        "On day 8 Ines walked to the harbour.", "On day 9 Ines bought bread from Bo.", "Ines is getting married on 14 June.",
        "My landlord, Mr Teixeira, wants 40 euros more a month.", "The dentist says I need two crowns.", "In 2019 Ines lived at 12 Mill Lane.",
    ]  # fmt: skip
    needed = must_survive(told, [], limit=200)
    assert {"14 June", "40 euros", "two crowns", "12 Mill Lane"} <= set(needed)
    assert not {"8 Ines", "9 Ines", "40", "June", "2019", "Mill Lane"} & set(needed)
    assert must_survive(["Voss swears to hang her on day 8."], [], limit=200)[0] == "day 8"


def test_known_terms_have_the_capitals_of_the_story() -> None:
    assert must_survive(["You meet Elena Swift."], ["elena swift"], limit=100) == ("Elena Swift",)


def test_what_must_survive_is_capped_and_the_most_important_is_kept() -> None:
    needed = must_survive(SCENE, ["silver key"], limit=20)
    assert needed[0] == "silver key"
    assert estimate_tokens(", ".join(needed)) <= 0.3 * 20
    names = [f"{first} {last}" for first in ("Ada", "Bram", "Cleo", "Dov", "Ena") for last in ("Ash", "Birch", "Cole", "Drew")]
    for limit in (40, 100, 200):
        size = estimate_tokens(", ".join(must_survive([f"{name} swears to be there." for name in names], names, limit=limit)))
        assert 0.2 * limit < size <= 0.3 * limit


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
        ("She hangs on the eighth day, day 8.", "day 8"),
        ("They wed on June 14.", "14 June"),
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
        ("Day 9 was cold; 8 men came.", "day 8"),
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
        "Voss left.",
        "A key was promised.",
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


DIARY = {
    "en": [
        "[u]: I had soup again, and then I went to bed.",
        "[u]: My landlord wants more rent, and I cannot pay it. What happened to Mira?",
        "[u]: My sister is ill, so I call her every evening at 9.",
        "[Bo]: I am allergic to walnuts, so I never eat cake.",
    ],
    "de": [
        "[u]: Ich habe wieder Suppe gegessen und bin dann ins Bett gegangen.",
        "[u]: Mein Vermieter will mehr Miete, und ich kann nicht zahlen.",
        "[u]: Meine Schwester ist krank. Ich rufe sie jeden Abend an. In der Gasse brennen Häuser.",
    ],
    "ru": [
        "[u]: Я опять ел суп и потом лёг спать.",
        "[u]: Хозяин хочет больше денег за квартиру, а платить мне нечем.",
        "[u]: Моя сестра больна, и я звоню ей каждый вечер. Мира ушла от нас.",
    ],
    "zh": ["[u]: 我又喝了汤，然后上床睡觉。", "[u]: 房东要涨房租，我付不起。", "[Mira]: 我妹妹病了，我每天晚上都给她打电话。米拉走了。"],
    "ja": ["[u]: またスープを飲んで、それから寝た。", "[u]: 大家さんが家賃を上げたいと言う。", "[u]: 妹が病気なので毎晩電話する。ミラは町を出た。"],
    "ko": ["[u]: 또 수프를 먹고 잠자리에 들었다.", "[u]: 집주인이 집세를 더 원하지만 낼 수 없다.", "[u]: 여동생이 아파서 매일 저녁 전화한다. 미라는 떠났다."],
}  # fmt: skip


@pytest.mark.parametrize(
    ("lang", "answer"),
    [
        ("en", "They sailed to the island and burned the temple down."),
        ("en", "They talked about life in the town and the harbour."),
        ("en", "Nothing happened."),
        ("en", "Sure! Nothing important happened."),
        ("en", "There was nothing to report."),
        ("en", "I refuse."),
        ("en", "It was so."),
        ("de", "Nichts ist passiert."),
        ("de", "Sie segelten zur Insel und plünderten den Tempel."),
        ("ru", "Ничего не произошло."),
        ("ru", "Они поплыли на остров и сожгли храм."),
        ("ru", "Nothing happened."),
        ("zh", "什么都没发生。"),
        ("zh", "他们航行到岛上，烧毁了神庙。"),
        ("zh", "I refuse."),
        ("ja", "何も起こらなかった。"),
        ("ja", "島へ渡り、神殿を燃やした。"),
        ("ko", "섬으로 가서 신전을 불태웠다."),
    ],
)
def test_a_short_answer_that_has_nothing_of_its_sources_is_refused(lang: str, answer: str) -> None:
    assert refuse(answer, DIARY[lang] * 2) is not None


@pytest.mark.parametrize(
    ("lang", "answer"),
    [
        ("en", "Mira left."),
        ("en", "They argued about the rent."),
        ("en", "The rents were discussed."),
        ("en", "Bo spoke."),
        ("en", "It was 9."),
        ("en", "Il ne s'est rien passé avec la famille."),
        ("de", "Sie stritten über die Miete."),
        ("de", "Ein Haus brannte."),
        ("ru", "Мира ушла."),
        ("ru", "Они спорили о квартире."),
        ("ru", "Сёстрам нездоровилось."),
        ("zh", "米拉走了。"),
        ("zh", "他们为房租争吵。"),
        ("zh", "Mira 走了。"),
        ("ja", "ミラは去った。"),
        ("ja", "家賃の話をした。"),
        ("ko", "미라가 떠났다."),
    ],
)
def test_a_short_answer_that_has_a_word_a_name_or_a_number_of_its_sources_is_taken(lang: str, answer: str) -> None:
    assert refuse(answer, DIARY[lang] * 2) is None


def test_where_nothing_happens_a_summary_may_say_so() -> None:
    assert refuse("Nothing happened.", ["[DM]: You wait the whole night in the barn, and nothing happened."]) is None


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


COUNTED = [
    "[DM]: Brannoc pays 1 crown for the rope at Harrowgate.",
    "[DM]: Three hundred and twenty riders come on the fourth day, at noon.",
]


@pytest.mark.parametrize(
    ("summary", "strange"),
    [
        ("Brannoc paid 900 crowns at Harrowgate.", ("900",)),
        ("Brannoc paid 1,200 crowns at Harrowgate.", ("1,200",)),
        ("Brannoc paid 5 crowns for the rope.", ("5",)),
        ("Brannoc paid 321 crowns in all.", ("321",)),
        ("Brannoc paid 1 crown for the rope, and 320 riders came on day 4.", ()),
        ("Brannoc paid one crown, and 300 riders came.", ()),
        ("1. Brannoc paid 1 crown.\n2. Riders came.\n3. It was noon.", ()),
        ("At 12:00 the riders came; the 2 of them fled.", ()),
        ("On day 14 the riders came, on 15 June.", ()),
        ("Half of them, 50%, fled.", ()),
    ],
)
def test_a_number_that_no_source_has_is_strange(summary: str, strange: tuple[str, ...]) -> None:
    assert strange_numbers(summary, COUNTED) == strange


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("Er zahlt neunhundert Kronen für das Schiff von Harrow.", "Er zahlte 900 Kronen für das Schiff."),
        ("Elle paie neuf cents couronnes pour le bateau.", "Elle a payé 900 couronnes."),
        ("Paga novecientas coronas por el barco, mil en total.", "Pagó 900 coronas."),
        ("Он платит девятьсот крон, сто из них сразу.", "Он заплатил 900 крон."),
        ("他付了三百枚金币。", "他付了300枚金币。"),
        ("金貨三百枚を払う。", "金貨300枚を払った。"),
        ("He pays 1.200 crowns.", "He paid 1,200 crowns."),
        ("He pays twelve hundred crowns.", "He paid 1200 crowns."),
        ("He pays two thousand five hundred and ten crowns.", "He paid 2510 crowns."),
        ("He meets twenty-five riders.", "He met 25 riders."),
        ("He buys half a dozen, then a dozen eggs.", "He bought 12 eggs."),
    ],
)
def test_a_number_may_be_written_in_another_way(source: str, summary: str) -> None:
    assert strange_numbers(summary, [source]) == ()


def test_what_has_hardly_a_word_of_its_sources_is_refused() -> None:
    assert refuse('banana banana asdf ;;; {"foo": 1}', COUNTED) is not None
    assert refuse("banana banana asdf qwer 1 zxcv", COUNTED) is not None
    assert refuse("Brannoc paid 1 crown at Harrowgate.", COUNTED) is None


def test_a_day_is_not_what_it_does() -> None:
    story = ["Brannoc and Qiu ride to Silverford, and the rain of day 4 goes on.", "On that day 4 goblins swear to kill Qiu."]
    needed = must_survive(story, [], limit=200)
    assert not any("4 goes" in term for term in needed)
    assert "4 goblins" in needed


@pytest.mark.parametrize(
    ("story", "wrong", "right"),
    [
        (["Edda offers 40 marks for the bell.", "Correction: Edda offers 50 marks for the bell, not 40."], "40 marks", "50 marks"),
        (["The toll is nine crowns, payable by dawn.", "No, sorry, ten crowns, not nine."], "nine crowns", "ten crowns"),
        (["The widow swears that it was Bole.", "No, not Bole, it was Ruven, she swears it."], "Bole", "Ruven"),
        (["Marta died in the fire.", "Actually, it was Marla who died in the fire, not Marta."], "Marta", "Marla"),
        (["The feast is in nine days, and a promise a promise.", "Correction: ten."], "nine days", ""),
    ],
)
def test_what_a_correction_takes_back_need_not_survive(story: list[str], wrong: str, right: str) -> None:
    assert wrong in must_survive(story[:1], [], limit=200)
    needed = must_survive(story, [], limit=200)
    assert wrong not in needed
    assert right == "" or right in needed


def test_an_answer_with_next_to_no_word_of_its_sources_is_refused() -> None:
    game = (
        "The game is over. You finished your part and walk out onto the open road without looking at other riders before going home alone."
    )
    assert refuse(game, COUNTED) is not None
