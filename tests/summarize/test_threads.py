"""What a sentence opens, and what closes it."""

from __future__ import annotations

import pytest

from talekeeper.model import Turn
from talekeeper.summarize.extractive import judged
from talekeeper.summarize.threads import ends, item_key, met, settles, vow


def turn(text: str, voice: str = "DM", location: str | None = None) -> Turn:
    return Turn("t", 1, "said", voice.lower(), voice, text, ("dm", "a"), location)


def names(text: str, voice: str = "DM", location: str | None = None) -> set[tuple[str, str]]:
    said = turn(text, voice, location)
    return {(one.name, one.kind) for draft in judged([said]) for one in met(draft, said)}


def vows(text: str, voice: str = "DM") -> list[tuple[str, str]]:
    said = turn(text, voice)
    return [(made.kind, made.who) for draft in judged([said]) if (made := vow(draft, said)) is not None]


def endings(text: str, voice: str = "DM") -> set[tuple[str, str]]:
    return {(end.how, end.name) for draft in judged([turn(text, voice)]) for end in ends(draft)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Captain Nan blows a whistle made of a bent nail.", ("Captain Nan", "person")),
        ("They come to the Gilded Eel at dusk.", ("Gilded Eel", "place")),
        ("There's a ship, the Marigold, that takes boys.", ("Marigold", "place")),
        ("The town of Harrowmere drowned in one night.", ("Harrowmere", "place")),
        ("The map shows Fuller's Row and the old church.", ("Fuller's Row", "place")),
        ("She presses a small brass key into your palm.", ("small brass key", "item")),
        ("Er gibt dir einen eisernen Schlüssel für das Tor.", ("eisernen schlüssel", "item")),
    ],
)
def test_whom_and_what_a_sentence_names(text: str, expected: tuple[str, str]) -> None:
    assert expected in names(text)


@pytest.mark.parametrize("text", ["I take the key.", "The wall is high.", "Can I roll Medicine?", "Dad said so.", "Oh God, Captain!"])
def test_what_tells_nothing_apart_is_not_named(text: str) -> None:
    assert names(text, "Elena") == set()


def test_a_day_is_nobody() -> None:
    assert ("Harrowtide", "") in names("They say that before Harrowtide the lake will lie down.")


def test_a_place_is_told_by_where_it_happens() -> None:
    assert names("Weir stands black against the sky, says Voss.", location="Weir") >= {("Weir", "place")}


@pytest.mark.parametrize(
    ("text", "voice", "kind"),
    [
        ("I swear that I will bring the ring back before the third bell.", "Rogue", "promise"),
        ("Kael promises Mira a new roof for her mill.", "DM", "promise"),
        ("Pay him, Borin, and I owe you twelve crowns.", "Elena", "promise"),
        ("Ich verspreche dir den Ring noch vor dem Winter.", "Elena", "promise"),
        ("我发誓要把王冠还给国王。", "艾琳", "promise"),
        ("I hand Voss the dagger and swear to come back for it before winter.", "Bard", "promise"),
        ("I pay Pim the 6 silver, and I promise him that we bring his brother back.", "Bard", "promise"),
        ("I pay Pim half of the 6 silver and promise him the rest at the chapel.", "Bard", "promise"),
        ("Corin pays Maud 12 marks and swears to return by the new moon.", "DM", "promise"),
        ("Ich gebe Mira den Schlüssel und verspreche, vor dem Winter zurückzukommen.", "Elena", "promise"),
        ("You will regret this, thief, by the end of the week!", "Voss", "threat"),
        ("Madam Sable threatens Jory's fingers and his sister.", "DM", "threat"),
        ("I'll be back for you, I promise.", "Rogue", "promise"),
        ("On my honour, I will be back by dawn.", "Rogue", "promise"),
        ("I will carry it to the Duke before the feast. You have my word.", "Rogue", "promise"),
        ("By my mother's grave, I will find your brother.", "Rogue", "promise"),
        ("Bei meiner Ehre, ich werde den Ring zurückbringen.", "Elena", "promise"),
        ("Je rapporterai la bague avant l'aube. Tu as ma parole.", "Elena", "promise"),
        ("Traeré la llave antes del alba. Tienes mi palabra.", "Elena", "promise"),
        ("Я верну кольцо до рассвета. Даю слово.", "Элена", "promise"),
        ("我以名誉担保，一定把戒指还给你。", "艾琳", "promise"),
        ("名誉にかけて、指輪を返す。", "エレナ", "promise"),
        ("If you touch her again I will cut your hand off.", "Voss", "threat"),
        ("One more step and I'll gut you.", "Voss", "threat"),
        ("You will answer for this with your life, Aldous.", "Voss", "threat"),
        ("You'll pay for this, Aldous.", "Voss", "threat"),
        ("I will find you, Aldous!", "Voss", "threat"),
        ("Ich bringe dich um, Aldous!", "Voss", "threat"),
        ("Wenn du sie noch einmal anfasst, hacke ich dir die Hand ab.", "Voss", "threat"),
        ("Si tu la touches encore, je te coupe la main.", "Voss", "threat"),
        ("Si vuelves a mirar a mi hermana, te corto la mano.", "Voss", "threat"),
        ("Если тронешь её ещё раз, я отрублю тебе руку.", "Восс", "threat"),
        ("我要杀了你。", "沃斯", "threat"),
        ("殺してやる。", "ヴォス", "threat"),
    ],
)
def test_promises_and_threats(text: str, voice: str, kind: str) -> None:
    assert [row[0] for row in vows(text, voice)] == [kind]


@pytest.mark.parametrize(
    ("text", "voice"),
    [
        ("I promise.", "Rogue"),
        ("Do you promise to bring the ring back?", "Mira"),
        ("You promised him bread and a roof.", "Wenna"),
        ("I swore two things by my forge, long ago.", "Borin"),
        ("I do not promise you the ring of the king.", "Rogue"),
        ("Borin has heard from Dorrit that Jory has a gambling debt.", "DM"),
        ("Elena keeps her promise, and Pip has a berth.", "DM"),
        ("I will be back by supper.", "Rogue"),
        ("I will find you a better room.", "Mira"),
        ("I'll cut your bread, and you pour the ale.", "Mira"),
        ("I will not kill you.", "Rogue"),
        ("He says that he will kill the lamps for you.", "Mira"),
        ("Voss keeps a long black ledger of all debts and promises.", "DM"),
        ("I pay Pim the 6 silver I promised him.", "Rogue"),
        ("I pay for the flour and never promise anything.", "Rogue"),
        ("The baker will pay for the flour.", "Mira"),
        ("Ich bringe dich um acht Uhr nach Hause.", "Mira"),
        ("Je te coupe une tranche de pain.", "Mira"),
    ],
)
def test_what_is_neither_a_promise_nor_a_threat(text: str, voice: str) -> None:
    assert vows(text, voice) == []


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("Sergeant Hob Grist dies on the chain.", ("dead", "Sergeant Hob Grist")),
        ("Grist is dead.", ("dead", "Grist")),
        ("In the end Borin kills Karl with his hammer.", ("dead", "Karl")),
        ("Magistrate Crane is caught in the millrace.", ("beaten", "Magistrate Crane")),
        ("You hand the brass key to the innkeeper.", ("spent", "brass key")),
        ("Grist ist tot.", ("dead", "Grist")),
    ],
)
def test_what_ends(text: str, end: tuple[str, str]) -> None:
    assert end in endings(text)


@pytest.mark.parametrize(
    "text",
    [
        "Grist is not dead.",
        "Is Grist dead?",
        "Borin comes to the drowned church.",
        "Grist will die if we wait.",
        "He would kill Grist for it.",
    ],
)
def test_what_does_not(text: str) -> None:
    assert not {end for end in endings(text) if end[0] == "dead"}


def test_a_word_that_was_kept() -> None:
    def kept(text: str) -> bool:
        return any(settles(draft) for draft in judged([turn(text, "Elena")]))

    assert kept("Twelve of mine go to Borin. There. Even.")
    assert kept("Elena keeps her promise.")
    assert kept("The quest is completed.")
    assert not kept("He was not even in there.")


@pytest.mark.parametrize(
    "text",
    [
        "I pay Tamsin her three crowns.",
        "Qiu pays Tamsin the three crowns.",
        "We're square, Qiu.",
        "The debt is paid.",
        "Here are the three crowns I owe you, Tamsin.",
        "Square.",
        "Ich zahle Tamsin die drei Kronen.",
        "Je paie à Tamsin ses trois couronnes.",
    ],
)
def test_a_debt_that_is_paid(text: str) -> None:
    drafts = judged([turn(text, "Qiu")])
    assert any(settles(draft) for draft in drafts)
    assert not any(vow(draft, turn(text, "Qiu")) for draft in drafts)


@pytest.mark.parametrize(
    "text",
    [
        "I will pay Tamsin her three crowns.",
        "I have to pay Tamsin three crowns.",
        "I pay Tamsin two of the three crowns.",
        "I pay three crowns for the mule.",
        "Do I pay Tamsin three crowns?",
        "If I pay Tamsin three crowns, she goes.",
        "We cross the square of Harrow.",
    ],
)
def test_a_debt_that_is_not_paid(text: str) -> None:
    assert not any(settles(draft) for draft in judged([turn(text, "Qiu")]))


def test_a_thing_is_the_same_in_other_cases() -> None:
    assert item_key("eisernen schlüssel") == item_key("eiserne schlüssel")
    assert item_key("brass key") != item_key("iron key")
