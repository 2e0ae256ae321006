"""Hearsay: what a seat quotes in its own turn is another's, or nobody's, unless it says that it speaks for itself."""

from __future__ import annotations

import pytest

import talekeeper as tk
from talekeeper.memory import character_facts, find_callbacks
from talekeeper.model import Turn
from talekeeper.summarize.claims import claims
from talekeeper.summarize.extractive import condense, judged
from talekeeper.summarize.threads import vow


def turn(text: str, voice: str) -> Turn:
    return Turn("t", 1, "said", voice.lower(), voice, text, ("dm", "a", "b", "c"))


def owners(text: str, voice: str = "Mira") -> set[str]:
    """To whom promises, threats and facts in a turn are credited."""
    said = turn(text, voice)
    drafts = judged([said])
    return {claim.owner for claim, _ in claims(drafts, [said])} | {made.who for draft in drafts if (made := vow(draft, said)) is not None}


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ('The guard told me: "I\'ll open the gate at dawn, I swear it."', "The guard"),
        ("The guard told me: 'I'll open the gate at dawn, I swear it.'", "The guard"),
        ('Osric said, "I swear that I will never go back to Greygate."', "Osric"),
        ('"I promise you the castle," Osric told me. "I am the Duke of Harrow."', "Osric"),
        ('Then Captain Voss said: "I promise you the castle of Harrow."', "Captain Voss"),
        ("Osric sagte: „Ich schwöre, dass ich nie nach Grauheim zurückgehe.“", "Osric"),
        ("„Ich verspreche dir das Schloss Harrow“, sagte Osric zu mir.", "Osric"),
        ("Le garde m'a dit : « Je promets de t'ouvrir la porte de Grisval. »", "Le garde"),
        ("Osric a dit : « Je jure de ne jamais revenir à Grisval. »", "Osric"),
        ("El guardia me dijo: «Juro que abriré la puerta del castillo.»", "El guardia"),
        ("Озрик сказал: «Я обещаю вернуть колокол до новолуния.»", "Озрик"),
    ],
)
def test_what_a_seat_quotes_is_whose_it_plainly_is(text: str, who: str) -> None:
    assert owners(text) == {who}


@pytest.mark.parametrize(
    "text",
    [
        'I read the letter aloud: "I, Duke Harrow, promise you the castle."',
        'The letter in my hand says: "I promise you the castle of Harrow."',
        'I unfold the letter. "I promise you the castle of Harrow."',
        'I remember the words of the guard: "I promise you the castle of Harrow."',
        'I tell them what Osric said. "I will never go back to Greygate. I swear it by the moon."',
        '"I promise you the castle of Harrow," he told me.',
        'I heard Osric say: "I promise you the castle of Harrow."',
        'He leans in. "I promise you the castle of Harrow."',
        'I ask the guard: "Who are you?" "I am the Duke, and I promise you the castle of Harrow."',
        '"Osric, I promise you the castle of Harrow," he told me.',
        "Ich lese den Brief vor: „Ich, Herzog Harrow, verspreche dir das Schloss.“",
        "Er sagte zu mir: „Ich verspreche dir das Schloss Harrow.“",
        "Je lis la lettre : « Je te promets le château de Harrow. »",
        "Il m'a dit : « Je te promets le château de Harrow. »",
        "Leo la carta en voz alta: «Te prometo el castillo de Harrow.»",
        "Me dijo: «Te prometo el castillo de Harrow.»",
        "Я читаю письмо: «Я обещаю вернуть колокол до новолуния.»",
        "Он сказал мне: «Я обещаю вернуть колокол до новолуния.»",
        "我读信：“我，哈罗公爵，发誓把城堡给你。”",
        "卫兵告诉我：“我发誓黎明时打开城门。”",
        "手紙を読む。「夜明けに門を開けると約束する。」",
        "番人は私に言った。「夜明けに門を開けると約束する。」",
    ],
)
def test_what_a_seat_quotes_is_nobodys_where_it_is_not_plain_whose(text: str) -> None:
    assert not owners(text) - {""}


@pytest.mark.parametrize(
    "text",
    [
        '"I promise you the castle of Harrow."',
        'I say: "I promise you the castle of Harrow."',
        'Then I lean over to Osric and whisper, "I promise you the castle of Harrow."',
        'I grab Osric and say: "I promise you the castle of Harrow."',
        '"I promise you the castle of Harrow," I tell the guard.',
        'I turn to Osric. "I promise you the castle of Harrow."',
        '*She smiles.* "I promise you the castle of Harrow."',
        'Mira looks up. She nods. "I promise you the castle of Harrow."',
        '"I promise you the castle of Harrow," says Mira.',
        '"I promise you the castle of Harrow." Osric says nothing.',
        'The guard told me: "Nobody passes." I shake my head. "I promise you the castle of Harrow."',
        "Dann sage ich zu Osric: „Ich verspreche dir das Schloss Harrow.“",
        "Ich wende mich an Osric. „Ich verspreche dir das Schloss Harrow.“",
        "« Je te promets le château de Harrow », dis-je au garde.",
        "J'ai dit à Osric : « Je te promets le château de Harrow. »",
        "Le digo a Osric: «Te prometo el castillo de Harrow.»",
        "Говорю Озрику: «Я обещаю вернуть колокол до новолуния.»",
        "我说：“我发誓黎明时打开城门。”",
        "于是我对卫兵说：“我发誓黎明时打开城门。”",
        "私は番人に言う。「夜明けに門を開けると約束する。」",
    ],
)
def test_a_seat_keeps_what_it_plainly_says_itself(text: str) -> None:
    assert owners(text) == {"Mira"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'Osric said, "I will never go back to Greygate. I swear it by the moon of Harrow."',
            ['Mira: Osric said, "I will never go back to Greygate."', 'Mira (quoting Osric): "I swear it by the moon of Harrow."'],
        ),
        (
            'I tell them what he said. "I will never go back to Greygate, I swear it."',
            ['Mira (quoting): "I will never go back to Greygate, I swear it."'],
        ),
        (
            "Osric sagte: „Ich gehe nie zurück. Ich schwöre es beim Mond von Grauheim.“",
            ["Mira (quoting Osric): „Ich schwöre es beim Mond von Grauheim.“"],
        ),
        (
            'Hob of the Old North Mill said, "I will never go back. I swear it by the moon of Harrow."',
            ['Mira (quoting): "I swear it by the moon of Harrow."'],
        ),
    ],
)
def test_a_fold_says_that_it_is_quoted(text: str, expected: list[str]) -> None:
    fold = [sentence.text for sentence in condense([turn(text, "Mira")], limit=200)]
    assert set(expected) <= set(fold)
    assert not [sentence for sentence in fold if sentence.startswith('Mira: "I') and "swear" in sentence]


async def test_nobody_owes_what_they_only_read_aloud() -> None:
    async with tk.open(":memory:") as keeper:
        seats = [tk.Seat("dm", role="dm", name="DM"), tk.Seat("mira", name="Mira"), tk.Seat("osric", name="Osric")]
        story = await keeper.story(tk.MemoryKey("t", "u", "s"), seats=seats)
        await story.append("mira", 'I read the letter aloud: "I, Duke Harrow, promise you the castle. I swear it by the silver bell."')
        await story.append("mira", 'Osric told me: "I swear that I will bring the silver bell to Greygate before the feast."')
        for number in range(60):
            await story.append("dm", f"Rain falls on the {number}. milestone of the long road to the north gate of Harrow.")
        assert 'Mira: "I swear it' not in (await story.context("osric", budget=400)).text
        assert not (await character_facts(story, "osric", "mira")).notable_events
        assert "Greygate" in (await character_facts(story, "osric", "osric")).notable_events[0].text
        promises = [end.text for end in await find_callbacks(story, "osric", limit=50) if end.kind == "promise"]
        assert promises == ['Mira: Osric told me: "I swear that I will bring the silver bell to Greygate before the feast."']


@pytest.mark.parametrize("other", ["The merchant bows.", "Someone coughs.", "The cobbler waits."])
def test_a_she_is_not_the_seat_where_another_did_something(other: str) -> None:
    alone, beside = (f'Kestrel waits. {between}"I promise to deliver 40 barrels," she says.' for between in ("", f"{other} "))
    for text, quoted in ((alone, False), (beside, True)):
        drafts = judged([Turn("t0", 0, "said", "kestrel", "Kestrel", text, ("dm",))])
        assert drafts[-1].quoted is quoted
