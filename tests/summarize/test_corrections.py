"""Corrections and repetitions: what is said again and again leaves room for others, and what corrects something is told before it."""

from __future__ import annotations

import pytest

from talekeeper.model import Sentence, Turn
from talekeeper.summarize.extractive import condense, merge
from talekeeper.tokens import estimate_tokens


def turns(*lines: tuple[str, str]) -> list[Turn]:
    return [Turn(f"t{at}", at, "said", voice.lower(), voice, text, ("dm",)) for at, (voice, text) in enumerate(lines)]


def told(sentences: tuple[Sentence, ...]) -> str:
    return " ".join(sentence.text for sentence in sentences)


def merged(*lines: tuple[str, str], limit: int) -> str:
    return told(merge([sentence for line in lines for sentence in condense(turns(line), limit=200)], limit=limit))


CORRECTED = {
    "en": (
        "Captain Voss keeps the silver key of the north gate in the old mill.",
        "No, Captain Voss keeps the silver key of the north gate in the chapel, not in the old mill.",
    ),
    "en, actually": (
        "The gate of the castle is at the south side of Harrow.",
        "Actually the gate of the castle is at the north side of Harrow.",
    ),
    "de": (
        "Hauptmann Voss versteckt den silbernen Schlüssel vom Nordtor in der alten Mühle.",
        "Nein, Hauptmann Voss versteckt den silbernen Schlüssel vom Nordtor in der Kapelle, nicht in der alten Mühle.",
    ),
    "fr": (
        "La capitaine Voss cache la clé d'argent de la porte dans le vieux moulin.",
        "Non, la capitaine Voss cache la clé d'argent de la porte dans la chapelle, pas dans le vieux moulin.",
    ),
    "es": (
        "La capitana Voss guarda la llave de plata de la puerta en el viejo molino.",
        "No, la capitana Voss no guarda la llave de plata de la puerta en el viejo molino, sino en la capilla.",
    ),
    "ru": (
        "Капитан Восс хранит серебряный ключ от северных ворот в старой мельнице.",
        "Нет, капитан Восс хранит серебряный ключ от северных ворот в часовне, а не в старой мельнице.",
    ),
    "zh": ("沃斯队长把北门的银钥匙藏在老磨坊里。", "不对，沃斯队长把北门的银钥匙藏在小教堂里，不是老磨坊。"),
    "ja": ("ヴォス隊長は北門の銀の鍵を古い水車小屋に隠した。", "違う、ヴォス隊長は北門の銀の鍵を水車小屋ではなく礼拝堂に隠した。"),
}


@pytest.mark.parametrize("lang", CORRECTED)
def test_a_correction_is_told_before_what_it_corrects(lang: str) -> None:
    wrong, right = CORRECTED[lang]
    fold = condense(turns(("DM", wrong), ("DM", right)), limit=estimate_tokens(right) + 2)
    assert told(fold) == right
    weights = {sentence.text: sentence.weight for sentence in condense(turns(("DM", wrong), ("DM", right)), limit=300)}
    assert weights[right] > weights.get(wrong, 0.0)


@pytest.mark.parametrize("lang", CORRECTED)
def test_a_correction_is_no_repetition_of_what_it_corrects(lang: str) -> None:
    wrong, right = CORRECTED[lang]
    assert right in merged(("DM", wrong), ("DM", "Elena dies."), ("DM", right), limit=300)


@pytest.mark.parametrize(
    ("said", "other", "news"),
    [
        (
            "My sister loves the old blue boat in the harbour.",
            ["How my sister loves that old blue boat in the harbour!", "My sister still loves the old blue boat in our harbour."],
            "On Sundays I swim with Luna in the lake.",
        ),
        (
            "Meine Schwester liebt das alte blaue Boot unten im Hafen.",
            [
                "Meine Schwester liebt dieses alte blaue Boot unten im Hafen!",
                "Ja, meine Schwester liebt das alte blaue Boot unten im Hafen.",
            ],
            "Am Sonntag schwimme ich mit Luna im See.",
        ),
    ],
)
def test_what_is_said_again_in_other_words_leaves_room_for_others(said: str, other: list[str], news: str) -> None:
    lines = [("Ana", said), *[("Ana", text) for text in other], ("Ana", news)]
    for fold in (told(condense(turns(*lines), limit=300)), merged(*lines, limit=300)):
        assert news in fold
        assert sum(text in fold for text in [said, *other]) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mira paints the wooden door of the cellar.", "Mira opens the wooden door of the cellar."),
        ("Is the old blue boat of old Luna in the harbour?", "The old blue boat of old Luna is in the harbour."),
        ("Mira walks along the cold river to the mill.", "Osric walks along the cold river to the mill."),
    ],
)
def test_what_is_like_it_and_says_something_else_is_told_as_well(one: str, other: str) -> None:
    assert [sentence.text for sentence in condense(turns(("DM", one), ("DM", other)), limit=300)] == [one, other]


PIER = (
    ("DM", "Odo says: “The boat leaves from the east pier at nine.”"),
    ("Tamsin", "East pier, nine."),
    ("DM", "The miller's wife turns slowly in the wind, before the bells ring."),
    ("DM", "Odo runs back. “Not the east pier, the west pier! And ten, not nine.”"),
)


@pytest.mark.parametrize("limit", [20, 30, 40, 60, 200])
def test_what_is_only_denied_gives_way_to_what_is_said_instead(limit: int) -> None:
    for text in (told(condense(turns(*PIER), limit=limit)), merged(*PIER, limit=limit)):
        assert "Not the east pier, the west pier!" in text
    weights = {sentence.text: sentence.weight for sentence in condense(turns(*PIER), limit=300)}
    assert weights["Odo: “Not the east pier, the west pier!”"] > weights["Odo says: “The boat leaves from the east pier at nine.”"]
    assert weights["Odo: “And ten, not nine.”"] > weights["Odo says: “The boat leaves from the east pier at nine.”"]


GATE = (
    ("DM", "Marta leans over the table. “Go up by the south gate.”"),
    ("Bran", "South gate at dawn, then."),
    ("DM", "The miller's wife turns slowly in the wind, before the bells ring."),
    ("Bran", "No, the north gate."),
)


@pytest.mark.parametrize("limit", [30, 40, 60])
def test_something_of_its_kind_takes_the_place_of_what_was_named(limit: int) -> None:
    for text in (told(condense(turns(*GATE), limit=limit)), merged(*GATE, limit=limit)):
        assert "No, the north gate." in text or "south gate" not in text.lower()
    weights = {sentence.text: sentence.weight for sentence in condense(turns(*GATE), limit=300)}
    assert weights['Bran: "No, the north gate."'] > weights.get('Bran: "South gate at dawn, then."', 0)


@pytest.mark.parametrize("text", ["No, the guard is dead.", "Not a word, the captain says.", "I want gold, not silver."])
def test_what_denies_something_else_leaves_the_others_what_they_are_worth(text: str) -> None:
    before = "Captain Voss hides the silver key of the south gate in the old mill."
    alone, beside = (condense(turns(*lines), limit=300)[0].weight for lines in ([("DM", before)], [("DM", before), ("Bran", text)]))
    assert alone == beside


def test_a_payment_is_news_beside_its_debt() -> None:
    debt, payment = ("Qiu", "I owe you three crowns and a drink, Tamsin."), ("Qiu", "I pay Tamsin her three crowns.")
    square = ("Tamsin", "Three crowns and a plum brandy. We're square, Qiu.")
    for text in (told(condense(turns(debt, payment, square), limit=60)), merged(debt, payment, square, limit=60)):
        assert "I pay Tamsin her three crowns." in text
        assert "We're square, Qiu." in text


def test_a_payment_weighs_as_much_as_the_promise() -> None:
    scenery = [("DM", f"The miller's wife turns slowly in the wind, before the bell of Harrow rings {at} times.") for at in range(2, 9)]
    story = [("Qiu", "I owe Tamsin three crowns."), *scenery, ("Qiu", "I pay Tamsin her three crowns.")]
    assert "I pay Tamsin her three crowns." in told(condense(turns(*story), limit=40))
