"""What a summary has lost comes back in the words of its sources, where there is room, and by name where there is none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talekeeper.summarize.faithful import SHARE, complete, missing, must_survive
from talekeeper.summarize.retelling import retell
from talekeeper.tokens import estimate_tokens

FLIGHT = [
    "[u]: The king promised Mira 300 gold and the hand of Duke Harl's daughter.",
    "[u]: Mira refused. She took the Ash Crown and rode to Arn.",
    "[u]: Captain Voss swore to hang her within 3 days.",
    "[u]: She gave the Ash Crown to Sister Ilse for safekeeping.",
    "[u]: At 9 o'clock Voss came with 12 riders.",
    "[u]: Mira promised Ilse a new one.",
]
REFUSED = "Mira refused the king's offer and rode away with the crown."


def tail(summary: str, sources: list[str], limit: int) -> tuple[list[str], tuple[str, ...]]:
    told, rest = retell(summary, missing(summary, must_survive(sources, [], limit=limit)), sources, limit=limit)
    return [telling.text for telling in told], rest


def test_promises_and_threats_are_told_and_not_only_who_made_them() -> None:
    told, rest = tail(REFUSED, FLIGHT, 120)
    assert "Captain Voss swore to hang her within 3 days." in told
    assert "The king promised Mira 300 gold and the hand of Duke Harl's daughter." in told
    assert "Mira promised Ilse a new one." in told
    assert not [name for name in rest if name in " ".join(told)], "nothing twice"


def test_a_sentence_is_of_its_source() -> None:
    told, _ = retell(REFUSED, (), FLIGHT, limit=120)
    assert told
    assert all(telling.text in FLIGHT[telling.source] for telling in told)


def test_what_the_summary_tells_is_not_told_again() -> None:
    told, _ = tail(
        "Captain Voss swore to hang Mira within three days, and the king promised her 300 gold and Harl's daughter.", FLIGHT, 120
    )
    assert not [text for text in told if "swore" in text or "300 gold" in text]


def test_what_is_lost_is_named_where_no_sentence_fits() -> None:
    long = " ".join(["Mira refused the offer and rode away."] * 6)
    told, rest = retell(long, ("Captain Voss", "300 gold"), FLIGHT, limit=30)
    assert not told
    assert rest == ("Captain Voss", "300 gold")


def test_who_says_i_is_told_with_it() -> None:
    told, _ = tail("Mira slept.", ["[user]: I promised my mother to call every Sunday.", "[DM]: Mira sleeps at the inn until noon."], 60)
    assert told == ['user: "I promised my mother to call every Sunday."']


def test_a_quotation_of_a_smaller_fold_keeps_its_speaker() -> None:
    told, _ = tail("Mira slept.", ['user: "I promised my mother to call every Sunday."', "[Voss] owes Mira 20 crowns."], 60)
    assert told == ['user: "I promised my mother to call every Sunday."', "[Voss] owes Mira 20 crowns."]


@pytest.mark.parametrize(
    "said",
    ["I will remember that, I promise.", "Did Voss promise Mira the key?", "Voss kept his promise to Mira.", "Also: Voss, 20 crowns."],
    ids=["a phrase", "a question", "a word kept", "a tail"],
)
def test_what_promises_nothing_is_not_told(said: str) -> None:
    assert retell("Mira slept.", (), [f"[Luna]: {said}"], limit=60) == ((), ())


@pytest.mark.parametrize(
    ("sources", "summary", "expected"),
    [
        (
            ["[SL]: Hauptmann Voss verspricht Elena 300 Goldstücke bis zum 14. Juni.", "[Elena]: Ich schulde Bo noch 40 Euro."],
            "Elena ging zum Hafen.",
            ["Hauptmann Voss verspricht Elena 300 Goldstücke bis zum 14. Juni.", "Elena: „Ich schulde Bo noch 40 Euro.“"],
        ),
        (
            ["[MJ]: Le capitaine Voss promet à Elena 300 pièces d'or.", "[Elena]: Je jure de rendre la clé avant le 14 juin."],
            "Elena est allée au port.",
            ["Le capitaine Voss promet à Elena 300 pièces d'or.", "Elena : « Je jure de rendre la clé avant le 14 juin. »"],
        ),
        (
            ["[DJ]: El capitán Voss promete a Elena 300 monedas de oro.", "[Elena]: Juro que devolveré la llave el 14 de junio."],
            "Elena fue al puerto.",
            ["El capitán Voss promete a Elena 300 monedas de oro.", "Elena: «Juro que devolveré la llave el 14 de junio.»"],
        ),
        (
            ["[Мастер]: Капитан Восс обещает Елене 300 золотых монет.", "[Елена]: Клянусь вернуть ключ до 14 июня."],
            "Елена пошла в порт.",
            ["Капитан Восс обещает Елене 300 золотых монет.", "Елена: «Клянусь вернуть ключ до 14 июня.»"],
        ),
        (
            ["[旁白]: 沃斯队长答应付给艾琳三百枚金币。", "[艾琳]: 我发誓三天内归还钥匙。"],
            "艾琳去港口买了面包。",
            ["沃斯队长答应付给艾琳三百枚金币。", "艾琳：“我发誓三天内归还钥匙。”"],
        ),
        (
            ["[語り手]: ヴォス隊長はエレナに金貨三百枚を約束した。", "[エレナ]: 三日以内に鍵を返すと誓う。"],
            "エレナは港でパンを買った。",
            ["ヴォス隊長はエレナに金貨三百枚を約束した。", "エレナ：「三日以内に鍵を返すと誓う。」"],
        ),
    ],
)
def test_promises_and_debts_are_told_in_every_language(sources: list[str], summary: str, expected: list[str]) -> None:
    assert tail(summary, sources, 150) == (expected, ())


def test_of_a_translation_nothing_is_told_in_another_language() -> None:
    told, rest = tail("Die Königstochter ist mit der Krone davongeritten, und der Hauptmann ist ihr auf der Spur.", FLIGHT, 120)
    assert not told
    assert rest


@pytest.mark.parametrize(
    "said",
    [
        "I promise you, Captain Voss{0}, to pay {0} gold crowns to Elena{0} at the mill. ",
        "Lady Mara{0} of Bridge Street {0} owes 4{0} silver. ",
    ],
    ids=["vows", "debts"],
)
def test_a_turn_as_long_as_a_chapter_is_told_from_in_a_moment(said: str) -> None:
    book = ["[DM]: " + "".join(said.format(number) for number in range(83_000 // len(said)))]
    lost = must_survive(book, [], limit=400)
    begun = time.perf_counter()
    told, _ = retell("Captain Voss smiles.", lost, book, limit=400)
    assert told
    assert time.perf_counter() - begun < 3, "it took some 10 seconds, and takes some tenths of one"


texts = st.text(max_size=120) | st.sampled_from(
    [*FLIGHT, "I owe Bo 40 euros.", "[Bo]: I swear it by the 14 keys.", "沃斯队长答应付三百枚金币。"]
)


@given(texts, st.lists(texts, max_size=5), st.integers(1, 300))
def test_the_tail_keeps_to_its_room_and_leaves_nothing_out(summary: str, sources: list[str], limit: int) -> None:
    lost = missing(summary, must_survive(sources, [], limit=limit))
    told, rest = retell(summary, lost, sources, limit=limit)
    text = " ".join([telling.text for telling in told])
    assert missing(text, lost) == rest
    if told:
        assert estimate_tokens(f"{text} {complete('', rest)}".strip()) <= max(limit * SHARE, limit - estimate_tokens(summary))
