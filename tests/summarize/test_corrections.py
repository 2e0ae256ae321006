"""Corrections and repetitions: what is said again and again leaves room for others, and what corrects or takes back something is told
before it."""

from __future__ import annotations

import pytest

from talekeeper.model import Sentence, Turn
from talekeeper.summarize.extractive import condense, judged, merge
from talekeeper.summarize.retelling import retell
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


REVERSED = [
    ("Kestrel owes Oswin 40 crowns.", "Oswin owes Kestrel 40 crowns."),
    ("Tamsin gives Oswin the silver key.", "Oswin gives the silver key back to Tamsin."),
    ("Marrow swears to kill Sable before winter.", "Sable swears to kill Marrow before winter."),
    ("Kestrel stole the duke's seal, says Brigg.", "Brigg stole the duke's seal, says Kestrel."),
    ("Tamsin gives Oswin the silver key.", "Oswin loses the silver key in the river."),
    ("Tamsin swears to protect the girl Ilse.", "Tamsin swears to kill the girl Ilse."),
    ("Marrow killed Sable with the bone knife.", "Marrow was killed by Sable with the bone knife."),
    ("Sergeant Dorn of the Weir is dead.", "Sergeant Dorn of the Weir is not dead."),
    ("Hauptmann Voss schwört Ritter Brand, den Turm zu retten.", "Ritter Brand schwört Hauptmann Voss, den Turm zu retten."),
    ("Tamsin donne à Oswin la clé d'argent du moulin.", "Oswin donne à Tamsin la clé d'argent du moulin."),
    ("Tamsin da a Oswin la llave de plata del molino.", "Oswin da a Tamsin la llave de plata del molino."),
    ("Тамсин дала Освину серебряный ключ от башни.", "Освин дал Тамсин серебряный ключ от башни."),
]


@pytest.mark.parametrize(("one", "other"), REVERSED)
def test_what_says_something_else_with_the_same_words_is_no_repetition(one: str, other: str) -> None:
    for fold in (told(condense(turns(("DM", one), ("DM", other)), limit=300)), merged(("DM", one), ("DM", other), limit=300)):
        assert one in fold
        assert other in fold


def test_who_owes_whom_is_told_of_both_who_say_so() -> None:
    mine, yours = (
        ("Sable", "I owe you one hundred and twenty crowns, Marrow."),
        ("Sable", "You owe me one hundred and twenty crowns, Marrow."),
    )
    for fold in (told(condense(turns(mine, yours), limit=300)), merged(mine, yours, limit=300)):
        assert mine[1] in fold
        assert yours[1] in fold


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tamsin gives Oswin the silver key of the mill.", "Tamsin gave Oswin the silver key of the old mill."),
        ("Marrow swears to kill Sable before winter.", "Marrow vows to kill Sable before winter comes."),
        ("Marrow killed Sable with the bone knife.", "Sable was killed by Marrow with the bone knife."),
        ("Oswin steals the silver key from the duke.", "From the duke, Oswin stole the silver key."),
    ],
)
def test_the_same_in_another_form_is_a_repetition(one: str, other: str) -> None:
    fold = told(condense(turns(("DM", one), ("DM", other)), limit=300))
    assert (one in fold) != (other in fold)


DEATH = {
    "en": (
        "Sergeant Dorn dies under a beam.",
        ["But Dorn is alive.", "No, Dorn is not dead: he is alive.", "Dorn still lives.", "Dorn survived."],
    ),
    "de": ("Hauptmann Dorn stirbt unter einem Balken.", ["Aber Dorn lebt.", "Hauptmann Dorn ist nicht tot."]),
    "fr": ("Le sergent Dorn meurt sous une poutre.", ["Mais Dorn est vivant.", "Dorn n'est pas mort."]),
    "es": ("El sargento Dorn muere bajo una viga.", ["Pero Dorn está vivo.", "Dorn no está muerto."]),
    "ru": ("Сержант Дорн погиб под балкой.", ["Но Дорн жив.", "Дорн не умер."]),
    "zh": ("多恩队长被横梁压死了。", ["但是多恩还活着。"]),
    "ja": ("ドーン隊長は梁の下敷きになって死んだ。", ["しかしドーンは生きている。"]),
}
BOND = {
    "en": (
        "The treaty with Drell is signed.",
        ["The treaty with Drell is broken.", "Drell cancels the treaty.", "The treaty with Drell is over."],
    ),
    "en, two": ("Kestrel marries Osric.", ["Kestrel leaves Osric.", "Osric has left Kestrel."]),
    "de": ("Der Vertrag mit Drell ist unterschrieben.", ["Der Vertrag mit Drell ist gebrochen."]),
    "fr": ("Le traité avec Drell est signé.", ["Le traité avec Drell est rompu."]),
    "es": ("El tratado con Drell está firmado.", ["El tratado con Drell está roto."]),
    "ru": ("Договор с Дреллом подписан.", ["Договор с Дреллом расторгнут."]),
    "zh": ("与德雷尔的条约签署了。", ["与德雷尔的条约被撕毁了。"]),
    "ja": ("ドレルとの条約が結ばれた。", ["ドレルとの条約は破棄された。"]),
}


def worths(*texts: str) -> list[float]:
    return [draft.worth for draft in judged(turns(*[("DM", text) for text in texts]))]


@pytest.mark.parametrize(("was", "ended"), [(was, ended) for was, others in [*DEATH.values(), *BOND.values()] for ended in others])
def test_what_takes_back_a_state_weighs_more_than_what_told_of_it(was: str, ended: str) -> None:
    before, after = worths(was, ended)
    assert after > before
    assert ended in told(condense(turns(("DM", was), ("DM", ended)), limit=300))


WEATHER = ("The rain keeps on and the road goes on beside the river.", "The lock keeper waves them through and says nothing.")


@pytest.mark.parametrize(
    ("was", "ended"), [("Sergeant Dorn dies under a beam.", "But Dorn is alive."), ("Kestrel marries Osric.", "Kestrel leaves Osric.")]
)
def test_what_takes_back_a_state_is_told_in_another_fold_as_well(was: str, ended: str) -> None:
    folds = [condense(turns(("DM", text), *[("DM", line) for line in WEATHER]), limit=60) for text in (was, ended)]
    assert ended in told(merge([sentence for fold in folds for sentence in fold], limit=22))


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("Sergeant Dorn dies.", "If Dorn is alive, we find him."),
        ("Sergeant Dorn dies.", "Is Dorn alive?"),
        ("Sergeant Dorn dies.", "They want Dorn dead or alive."),
        ("Sergeant Dorn dies.", "Dorn is not alive."),
        ("Sergeant Dorn dies.", "Nobody is alive."),
        ("Sergeant Dorn dies.", "Marta hopes that Dorn is alive."),
        ("Sergeant Dorn dies.", "While Dorn was alive, Marta sang."),
        ("Sergeant Dorn dies.", "Marta feels alive beside Dorn."),
        ("Sergeant Dorn dies.", "Marta is alive."),
        ("Grist kills Dorn.", "Grist is alive."),
        ("The treaty with Drell is signed.", "The treaty with Drell is not broken."),
        ("The treaty with Drell is signed.", "Kestrel breaks the mirror of Drell."),
    ],
)
def test_what_takes_nothing_back_leaves_the_others_what_they_are_worth(before: str, text: str) -> None:
    met = "Sergeant Dorn and Grist meet Marta and Kestrel in Drell."
    alone, beside = worths(met, before), worths(met, before, text)
    assert beside == [*alone, worths(met, text)[1]]


@pytest.mark.parametrize(
    "text",
    [
        "Oswin dreams that Tamsin is dead. He wakes; she is snoring beside him.",
        "Agnes tells a tale in which the king is murdered. It is only a tale.",
    ],
)
def test_who_wakes_from_a_dream_is_told_with_it(text: str) -> None:
    fold = told(condense(turns(("DM", text), *[("DM", line) for line in WEATHER]), limit=estimate_tokens(text) + 4))
    assert text in fold


def test_a_death_that_is_dreamt_is_none() -> None:
    dreamt, real = worths("Oswin dreams that Tamsin is dead.", "In the morning Tamsin is dead.")
    assert dreamt + 3 < real


WARRANT = "Orla Wend reads out a new warrant against Petronel Ashby and Marrow, dead or alive: 400 crowns each."


@pytest.mark.parametrize(
    "correction",
    [
        "Actually the warrant names 350 crowns for Marrow, not 400; Orla Wend corrects it in red ink.",
        "The warrant names 350 crowns for Marrow, not 400; Orla Wend corrects it in red ink.",
        "Actually the warrant names 350 crowns for Marrow, not 400, Orla Wend writes in red ink below.",
        "Actually the warrant names 350 crowns for Marrow, and Orla Wend corrects it in red ink.",
    ],
)
def test_a_long_correction_is_heeded(correction: str) -> None:
    wrong, right = worths(WARRANT, correction)
    assert right > wrong
    limit = estimate_tokens(correction) + 2
    for fold in (
        told(condense(turns(("DM", WARRANT), ("DM", correction)), limit=limit)),
        merged(("DM", WARRANT), ("DM", correction), limit=limit),
    ):
        assert fold == correction


def test_what_has_a_number_of_its_own_is_corrected_by_none() -> None:
    before = "Captain Voss pays Tamsin 40 crowns for the silver key of the north gate of Harrow."
    assert worths(before)[0] == worths(before, "Actually Captain Brand has 12 crowns in the old mill, and nobody knows of it but Lena.")[0]


def test_a_death_that_was_taken_back_is_not_told_again() -> None:
    sources = ["The miller sings.", "Sergeant Dorn dies under a beam.", "But Dorn is alive, as Marta sees."]
    tellings, _ = retell("Marta sees that Dorn is well.", [], sources, limit=200)
    assert not any("dies" in telling.text for telling in tellings)
    tellings, _ = retell("Marta sings.", [], sources[:2], limit=200)
    assert any("dies" in telling.text for telling in tellings)


@pytest.mark.parametrize(
    "text",
    [
        "It is a lie that Dorn is alive.", "Nobody says that Dorn is alive.", "Marta lies that Dorn is alive.", "Marta says that Dorn is alive.",
        '"Dorn lives!" the madman cries.', "Dorn did not die in vain.", "Dorn did not die alone.", "Dorn is not dead tired, only wet.",
        "Dorn's son is alive.", "Dorn is not yet buried; his dog is alive.", "Yesterday Dorn was alive.",
    ],
)  # fmt: skip
def test_what_only_sounds_like_it_takes_back_no_death(text: str) -> None:
    death = "Dorn is killed at the ford by Captain Voss."
    assert worths(death, text)[0] > worths(death, text)[-1]
    assert death in merged(("DM", death), ("DM", text), ("DM", "The camp is quiet."), limit=40)


def test_two_do_it_together_in_whatever_order() -> None:
    one, other = "Captain Voss and Tam fight on the bridge of Ashford.", "Tam and Captain Voss fight on the bridge of Ashford."
    assert len(condense(turns(("DM", one), ("DM", other)), limit=100)) == 1


def test_one_gift_in_many_wordings_is_told_twice_at_the_most() -> None:
    gifts = [
        "Tamsin gives Oswin the silver key of the crypt.", "Oswin receives the silver key of the crypt from Tamsin.",
        "The silver key of the crypt is given to Oswin by Tamsin.", "Tamsin hands Oswin the silver key of the crypt.",
        "Oswin takes the silver key of the crypt from Tamsin.", "Tamsin gave the silver key of the crypt to Oswin.",
    ]  # fmt: skip
    assert len(condense(turns(*(("DM", gift) for gift in gifts)), limit=200)) <= 2
