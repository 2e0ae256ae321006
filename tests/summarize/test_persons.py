"""Who is meant: a fold does not tell of a "he" whom the reader would take for someone else."""

from __future__ import annotations

import pytest

from talekeeper.model import Turn
from talekeeper.summarize.claims import claims
from talekeeper.summarize.extractive import condense, judged
from talekeeper.summarize.threads import vow
from talekeeper.tokens import estimate_tokens


def turns(*texts: str) -> list[Turn]:
    return [Turn(f"t{at}", at, "said", "dm", "DM", text, ("dm",)) for at, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("about", "he", "expected"),
    [
        ("Captain Voss sits by the fire.", "Then he swore to burn the mill.", "Then [Captain Voss] swore to burn the mill."),
        ("Captain Voss sits by the fire.", "In the night he swears to burn it.", "In the night [Captain Voss] swears to burn it."),
        ("Hauptmann Voss sitzt am Feuer.", "Dann schwört er Rache.", "Dann schwört [Hauptmann Voss] Rache."),
        ("Hauptmann Voss sitzt am Feuer.", "Aber er schwört Rache.", "Aber [Hauptmann Voss] schwört Rache."),
        ("Voss est assis près du feu.", "Puis il jure de brûler le moulin.", "Puis [Voss] jure de brûler le moulin."),
        ("Voss entra en la sala.", "Luego él jura quemar el molino.", "Luego [Voss] jura quemar el molino."),
        ("Капитан Восс сидит у огня.", "Потом он клянётся сжечь мельницу.", "Потом [Капитан Восс] клянётся сжечь мельницу."),
        ("沃斯队长坐在火边。", "然后他发誓要烧掉磨坊。", "然后[沃斯]发誓要烧掉磨坊。"),
        ("ヴォス隊長が火のそばに座っている。", "それから彼は水車小屋を焼くと誓った。", "それから[ヴォス]は水車小屋を焼くと誓った。"),
    ],
)
def test_a_he_behind_a_small_word_gets_the_name(about: str, he: str, expected: str) -> None:
    assert expected in [sentence.text for sentence in condense(turns(about, he), limit=200)]


@pytest.mark.parametrize(
    ("other", "about", "he"),
    [
        (
            "Elena takes the silver key of the duke and dies.",
            "Voss meets Anselm, and both of them sit by the fire, and nothing much is said there for the rest of the evening.",
            "Then he swore to burn the mill of Harrow.",
        ),
        (
            "Elena nimmt den silbernen Schlüssel und stirbt.",
            "Voss und Anselm sitzen am Feuer, und den ganzen Rest des Abends wird dort von niemandem mehr viel gesprochen.",
            "Dann schwört er, die Mühle niederzubrennen.",
        ),
        (
            "艾琳拿走了银钥匙，然后死了。",
            "沃斯和安塞姆坐在火边，整个晚上都没有人多说什么，雨一直下，天色渐渐暗了。",
            "然后他发誓要烧掉磨坊。",
        ),
    ],
)
def test_a_he_without_a_name_stands_with_whoever_is_meant_or_apart(other: str, about: str, he: str) -> None:
    blank = "" if he[-1] == "。" else " "
    story = turns(other, about, he)
    small = estimate_tokens(f"{other} {he}") + 8
    apart = condense(story, limit=small)
    assert [sentence.text for sentence in apart] == [other, f"…{blank}{he}"]
    assert sum(estimate_tokens(sentence.text) for sentence in apart) <= small
    assert f"{about}{blank}{he}" in [sentence.text for sentence in condense(story, limit=300)]


@pytest.mark.parametrize(
    "text",
    [
        "When he comes, Voss swears to burn the mill.",
        "As he speaks, Voss swears to burn the mill.",
        "The letter he wrote is in the mill of Harrow.",
    ],
)
def test_a_he_who_does_not_do_what_is_told_stays(text: str) -> None:
    assert text in [sentence.text for sentence in condense(turns(f"Captain Borin sits by the fire. {text}"), limit=200)]


def test_what_he_does_behind_a_small_word_is_a_fact_of_his() -> None:
    story = turns("Captain Voss sits by the fire.", "Then he swore to Elena that he would burn the mill of Harrow.")
    assert [claim.owner for claim, _ in claims(judged(story), story)] == ["Captain Voss"]


SEVERAL = [
    ("Liesl looks at Corvin Hale.", "He killed nine men at Kessrin."),
    ("Ysolde kneels before Odo.", "He gives her the Key of Ys."),
    ("Gudrun Vey had a son.", "He fell at Tol Verrin, and he owed Brannoc nine crowns."),
    ("Ysolde waits for Odo Reed.", "He swears to bring the Blade of Ys to Kessrin."),
    ("Odo Reed bows to Marta Oake.", "She promises the Blade of Ys to Gall."),
    ("Lord Voss sits beside Anselm.", "He swears to burn the mill of Harrow."),
    ("Voss sieht Anselm an.", "Er schwört, die Mühle von Harrow niederzubrennen."),
    ("Voss regarde l'aubergiste.", "Il jure de brûler le moulin de Harrow."),
    ("Voss mira a Anselmo.", "Él jura quemar el molino de Harrow."),
    ("Восс смотрит на стражника.", "Он клянётся сжечь мельницу."),
    ("沃斯看着守卫。", "他发誓要烧掉磨坊。"),
    ("ヴォスは衛兵を見た。", "彼は水車小屋を焼くと誓った。"),
]


@pytest.mark.parametrize(("about", "he"), SEVERAL)
def test_a_he_who_may_be_one_of_two_gets_no_name(about: str, he: str) -> None:
    blank = "" if he[-1] == "。" else " "
    for story in (turns(f"{about}{blank}{he}"), turns(about, he)):
        told = [sentence.text for sentence in condense(story, limit=300)]
        assert "[" not in " ".join(told)
        assert f"{about}{blank}{he}" in told
        drafts = judged(story)
        assert not [claim for claim, _ in claims(drafts, story) if he in claim.text and claim.kind != "trait"]
        assert not [one for draft in drafts if he in draft.body and (one := vow(draft, story[draft.stretch]))]


def test_a_he_who_may_be_someone_earlier_in_the_turn_gets_no_name() -> None:
    story = turns("Gall enters the hall of Kessrin. Captain Voss sits by the fire. Then he swore to burn the mill.")
    assert "[" not in " ".join(sentence.text for sentence in condense(story, limit=200))


def test_whoever_does_what_an_unknown_he_says_is_not_told() -> None:
    story = turns("Marta turns to Gall. He glares. “I swear I never touched the Blade of Ys.”")
    assert "Marta turns to Gall. He glares. “I swear I never touched the Blade of Ys.”" in [one.text for one in condense(story, limit=200)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Odo Reed enters the hall of Kessrin. Then he swore to burn it, and the whole town.", "[Odo Reed] swore"),
        ("Lady Ottoline sits with Lord Gall. Then she swore to burn the mill, and the town.", "[Lady Ottoline] swore"),
        ("Odo Reed holds the Blade of Ys. Then he swore to burn the mill, and the town.", "[Odo Reed] swore"),
    ],
)
def test_a_place_a_thing_or_one_of_another_gender_is_no_he(text: str, expected: str) -> None:
    assert expected in " ".join(sentence.text for sentence in condense(turns(text), limit=200))


def test_a_quotation_of_a_she_goes_with_whoever_she_is() -> None:
    slate = "Marta Oake counts it up on her slate: two beds, eleven soups, one broken shutter."
    letter = "A rider comes in yellow. “Letter for Qiu,” she says. It reads: “Student, I am not dead. Come to the Jade Pass.”"
    told = " ".join(sentence.text for sentence in condense(turns(slate, letter), limit=60))
    assert "“Letter for Qiu,” [A rider] says." in told
    door = "Edric grips Brannoc's arm. “There is another door,” he says. “The heart is in the well behind the Drowned Bell.”"
    for limit in (50, 60, 70, 90):
        told = " ".join(sentence.text for sentence in condense(turns(slate, door), limit=limit))
        at = told.find("“There is another door,” he says.")
        assert at < 0 or told[:at].endswith(("Edric grips Brannoc's arm. ", "… "))


@pytest.mark.parametrize(
    "text",
    [
        "I am called Qiu; I carry letters over the Jade Pass.",
        "我叫秋。I am called Qiu; I carry letters over the Jade Pass.",
        "Ich heiße Qiu und trage Briefe über den Jadepass.",
        "Je suis Qiu, et je porte des lettres par le col.",
        "Me llamo Qiu y llevo cartas.",
        "Меня зовут Qiu, и я ношу письма.",
        "我是Qiu，我送信。",
    ],
)
def test_an_i_who_says_their_own_name_is_still_quoted(text: str) -> None:
    told = [Turn("t0", 0, "said", "qiu", "Qiu", text, ("dm", "qiu", "bran"))]
    assert all(sentence.text.startswith(("Qiu: ", "Qiu：", "Qiu : ")) for sentence in condense(told, limit=200))


# --- you -------------------------------------------------------------------------------------------------------------


def table(*lines: tuple[str, str], audience: tuple[str, ...] = ("dm", "osric", "mira", "tam")) -> list[str]:
    told = [Turn(f"t{at}", at, "said", voice.lower(), voice, text, audience) for at, (voice, text) in enumerate(lines)]
    return [sentence.text for sentence in condense(told, limit=300)]


@pytest.mark.parametrize(
    ("act", "told", "expected"),
    [
        ("I open the chest.", "You find a silver key and 30 gold.", "You [Osric] find a silver key and 30 gold."),
        ("I open the chest.", "Then you give Brask the silver key.", "Then you [Osric] give Brask the silver key."),
        ("Ich öffne die Truhe.", "Du findest einen silbernen Schlüssel.", "Du [Osric] findest einen silbernen Schlüssel."),
        ("Ich öffne die Truhe.", "Dann gibst du Brask das Gold.", "Dann gibst du [Osric] Brask das Gold."),
        ("J'ouvre le coffre.", "Tu trouves la clé d'argent.", "Tu [Osric] trouves la clé d'argent."),
        ("Abro el cofre con mi daga.", "Luego tú tomas la llave de plata.", "Luego tú [Osric] tomas la llave de plata."),
        ("Я открываю сундук.", "Ты находишь серебряный ключ.", "Ты [Osric] находишь серебряный ключ."),
        ("我打开箱子。", "你找到一把银钥匙。", "你[Osric]找到一把银钥匙。"),
        ("私は箱を開ける。", "あなたは銀の鍵を見つけた。", "あなた[Osric]は銀の鍵を見つけた。"),
    ],
)
def test_you_are_whoever_alone_hears_it_and_not_whoever_has_acted(act: str, told: str, expected: str) -> None:
    lines = ("DM", "…"), ("Osric", act), ("DM", told)
    assert expected in table(*lines, audience=("dm", "osric"))
    assert expected not in table(*lines)


def test_you_are_whoever_alone_hears_it() -> None:
    lines = ("DM", "You find a silver key and 30 gold."), ("DM", "You give it to Brask."), ("Osric", "I promise Brask the silver key.")
    assert "You [Osric] find a silver key and 30 gold." in table(*lines, audience=("dm", "osric"))
    assert "You find a silver key and 30 gold." in table(*lines)


@pytest.mark.parametrize(
    ("acts", "told"),
    [
        ((("Osric", "I open the chest."), ("Mira", "I help him.")), "You find a silver key and 30 gold."),
        ((("Osric", "I open the chest."),), "You all find a silver key and 30 gold."),
        ((("Osric", "I open the chest."),), "You and Mira find a silver key and 30 gold."),
        ((("Osric", "I open the chest."),), "Osric opens it. You find a silver key and 30 gold."),
        ((("Osric", "Ich öffne die Truhe."),), "Ihr findet einen silbernen Schlüssel."),
        ((("Osric", "我打开箱子。"),), "你们找到一把银钥匙。"),
        ((("Osric", "I open the chest."), ("DM", "It creaks.")), "You find a silver key and 30 gold."),
        ((("Osric", "I keep watch."),), "You come to the camp of the charcoal burners."),
    ],
)
def test_you_stay_where_it_is_not_plain_who_is_told(acts: tuple[tuple[str, str], ...], told: str) -> None:
    assert "[" not in " ".join(table(*acts, ("DM", told)))


@pytest.mark.parametrize(
    ("story", "oath", "who"),
    [
        (
            'Voss glares at Finn until Finn mutters, "Fine. I swear to guard the mill of Harrow."',
            "I swear to guard the mill of Harrow",
            "Finn",
        ),
        ('Voss glares at Finn until he mutters, "Fine. I swear to guard the mill of Harrow."', "I swear to guard the mill of Harrow", ""),
        ('Voss glares at Finn, who mutters, "Fine. I swear to guard the mill of Harrow."', "I swear to guard the mill of Harrow", ""),
        ('When Voss had counted the crowns, Ada said: "Ten short. I swear to pay the rest tomorrow."', "I swear to pay", "Ada"),
        ('Voss glares at Finn and mutters, "Fine. I swear to guard the mill of Harrow."', "I swear to guard the mill of Harrow", "Voss"),
        ('Mira hands Voss the ring. "I keep it," says Voss. She nods. "I swear to come back for it."', "I swear to come back", ""),
    ],
)
def test_an_oath_is_of_whoever_mutters_it_and_not_of_the_one_who_glares(story: str, oath: str, who: str) -> None:
    drafts = judged(turns(story))
    made = [made for draft in drafts if oath in draft.text and (made := vow(draft, turns(story)[0]))]
    assert [one.who for one in made] == [who] * bool(who)
    assert who == "" or [draft.voice for draft in drafts if draft.voice] == [who]
    assert who or not any(f"{name}: " in draft.text for name in ("Voss", "Finn", "Mira") for draft in drafts)


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        (("Gaspard se penche.", "— Je te rendrai tes trente écus, dit Gaspard. Je le jure sur ma mère.", "— Marché conclu, je le jure !"), "Gaspard"),
        (("Фрол снимает шапку.", "— Я верну тебе сто рублей, — сказал Фрол. — Клянусь.", "— Клянусь могилой отца!"), "Фрол"),
        (("Ordoño se inclina.", "—Te prometo veinte reales el domingo —dice Ordoño—. Lo juro.", "—Te lo juro por mi madre."), "Ordoño"),
        (("Voss beugt sich vor.", "– Ich verspreche dir vierzig Taler, sagt Voss. Ich schwöre es dir.", "– Ich schwöre es dir auch."), "Voss"),
    ],
)  # fmt: skip
def test_what_someone_says_behind_a_dash_is_theirs_and_not_the_narrators(lines: tuple[str, ...], who: str) -> None:
    story = turns("\n".join(lines))
    drafts = judged(story)
    assert [draft.text for draft in drafts] == list(lines)
    assert [made.who for draft in drafts if (made := vow(draft, story[0]))] == [who]


def test_someone_without_a_name_is_told_in_full() -> None:
    story = turns('The guard captain looks at the note. "This is forged," he says.')
    assert '"This is forged," [The guard captain] says.' in [sentence.text for sentence in condense(story, limit=90)]


# --- others who may be meant ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'The sergeant lifts his lamp. Kestrel freezes. "Show me your hands or I will kill you," he says.',
        'The merchant bows. Oswin counts the coins. "I promise to deliver 40 barrels by Friday," he says.',
        '"I will never pay," says Brigg. Oswin nods. "But I will give you the barge," he adds.',
        'Brigg leans back. Elena frowns. "I swear I will pay 40 crowns," he says.',
        'The witch smiles. Tamsin shivers. "I will take your firstborn," she says.',
        'Brigg nods. Then someone coughs. "I will pay 500 crowns," he says.',
        'Brigg nods. The cobbler waits. "I will pay 500 crowns," he says.',
        'The old cobbler waits. Brigg nods. "I will pay 500 crowns," he says.',
        'Brigg nods. Another laughs. "I will pay 500 crowns," he says.',
        'Brigg just laughs. Elena frowns. "I will pay 500 crowns," he says.',
        'Brigg leans back. Elena frowns.\n\n"I swear I will pay 40 crowns," he says.',
        'Brigg leans back. Elena frowns. He grins. "I swear I will pay 40 crowns." Tamsin nods.',
        'The innkeeper looks at the merchant. "I will pay 40 crowns," he says.',
        'The abbess smiles. "I will pay 40 crowns," he says.',
        'The sergeant lifts his lamp. Kestrel freezes. "Show me your hands or I will kill you."',
        'Someone coughs. "I will pay 500 crowns." Brigg nods.',
        "Brigg leans back. Elena frowns. He swears to pay 40 crowns.",
        "Der Wirt nickt. Oswin zählt die Münzen. „Ich verspreche dir 40 Fässer“, sagt er.",
        "Voss lacht. Jemand hustet. „Ich verspreche dir 40 Fässer“, sagt er.",
        "El mercader sonríe. Oswin cuenta las monedas. «Prometo 40 barriles», dice él.",
        "Купец кивает. Освин считает монеты. «Клянусь, я заплачу 40 крон», говорит он.",
    ],
)
def test_a_he_may_be_anyone_who_did_something_before_in_the_same_turn(text: str) -> None:
    story = turns(text)
    drafts = judged(story)
    assert "[" not in " ".join(draft.text for draft in drafts)
    assert {draft.voice for draft in drafts} == {""}
    assert {claim.owner for claim, _ in claims(drafts, story) if "says" in claim.text or "adds" in claim.text} <= {""}


@pytest.mark.parametrize(
    "text",
    [
        'The merchant bows. Oswin counts the coins. "I promise to deliver 40 barrels by Friday," he says.',
        "Brigg leans back. Elena frowns. Then he swore to burn the mill of Harrow.",
    ],
)
def test_a_he_stands_with_all_who_may_be_meant_or_apart(text: str) -> None:
    gift = "Marta gives the duke the silver key of Kessrin, and he pays her 300 crowns."
    for limit in range(24, 90):
        (fold,) = [" ".join(one.text for one in condense(turns(gift, text), limit=limit))]
        at = max(fold.find('"I promise'), fold.find("Then he swore"))
        assert at < 0 or text in fold or fold[:at].endswith("… "), fold
    assert text in fold


def test_whom_a_he_turns_to_may_answer_and_to_whom_he_gives_something_does_not() -> None:
    told = 'Voss signs it. He {} to Brigg. "I will pay 40 crowns," he says.'
    assert judged(turns(told.format("turns")))[-1].voice == ""
    assert judged(turns(told.format("gives it")))[-1].voice == "Voss"


@pytest.mark.parametrize(
    ("texts", "never"),
    [
        (("Brigg leans back.", "Elena frowns.", "He swears to pay 40 crowns."), "[Elena]"),
        (("Brigg leans back. Elena frowns.", "He swears to pay 40 crowns."), "[Elena]"),
        (("The sergeant lifts his lamp.", "Elena frowns.", "He swears to pay 40 crowns."), "[Elena]"),
        (("Brigg leans back. Elena frowns.", '"I swear I will pay 40 crowns."'), "Elena]"),
    ],
)
def test_a_he_may_be_someone_of_the_turn_before(texts: tuple[str, ...], never: str) -> None:
    assert never not in " ".join(draft.text for draft in judged(turns(*texts)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Brigg sits down. "I promise you 40 crowns," he says.', '"I promise you 40 crowns," [Brigg] says.'),
        ('Brigg shrugs and picks up his cup. "I promise you 40 crowns," he says.', '"I promise you 40 crowns," [Brigg] says.'),
        ('Lady Vex takes the ring. Brigg bows. "I will pay 40 crowns," he says.', '"I will pay 40 crowns," [Brigg] says.'),
        ('Captain Voss turns. The captain sighs. "I will pay 40 crowns," he says.', '"I will pay 40 crowns," [The captain] says.'),
        ('A tall man steps out of the rain. "I will pay 40 crowns," he says.', '"I will pay 40 crowns," [A tall man] says.'),
        ('Brigg nods. "I have 40 crowns." Voss leans in. "Give me the crown or die."', 'Voss: "Give me the crown or die."'),
        ('Brigg nods.\n\nVoss leans in. "Give me the crown or die."', 'Voss: "Give me the crown or die."'),
        ("Rain falls on the roof. Brigg leans back. He swears to pay 40 crowns.", "[Brigg] swears to pay 40 crowns."),
    ],
)
def test_a_he_of_whom_alone_a_turn_tells_gets_the_name(text: str, expected: str) -> None:
    assert expected in [draft.text for draft in judged(turns(text))]


# --- somebody ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "texts",
    [
        ("Fennmoor burns.", "He swears revenge on the duke."),
        ("Excalibur lies on the table.", "He takes it and swears to kill the king."),
        ("Excalibur lies on his table.", "He takes it and swears to kill the king."),
        ("Fennmoor sleeps.", "She promised to meet you at the mill."),
        ("Tol Verrin is taken.", "He swears revenge on the duke."),
        ("The Marigold sails at dawn.", "She promised to meet you at the mill."),
        ("Fennmoor burns. He swears revenge on the duke.",),
        ('Fennmoor burns. "I swear revenge on the duke," he says.',),
        ('Fennmoor burns. "I swear revenge on the duke."',),
        ("Fennmoor burns.", '"I swear revenge on the duke."'),
        ("Fennmoor brûle.", "Il jure de tuer le duc."),
        ("Fennmoor arde.", "Él jura matar al duque."),
    ],
)
def test_a_place_or_a_thing_is_nobody(texts: tuple[str, ...]) -> None:
    story = turns(*texts)
    drafts = judged(story)
    assert not [draft.text for draft in drafts if "[" in draft.text or draft.text.startswith(("Fennmoor:", "Fennmoor :"))]
    assert {draft.voice for draft in drafts} == {""}


@pytest.mark.parametrize(
    "telling",
    [
        "Brigg nods at the fire.",
        "Captain Brigg is here.",
        "Brigg, who keeps the inn, is here.",
        "Brigg is here. Brigg nods.",
        "Brigg's hands tremble.",
        "Brigg lights his pipe.",
        "Brigg rummages in his bag.",
        "Brigg raises an eyebrow.",
    ],
)
def test_whoever_does_what_only_somebody_does_is_somebody(telling: str) -> None:
    assert "Brigg] swears to burn the mill." in " ".join(draft.text for draft in judged(turns(telling, "He swears to burn the mill.")))


def test_whoever_is_told_of_elsewhere_or_speaks_is_somebody() -> None:
    silent = turns("Brigg is here.", "He swears to burn the mill.")
    assert "[" not in " ".join(draft.text for draft in judged(silent))
    for telling in ("Brigg shrugs.", "Brigg, a fat monk, waits."):
        told = turns(telling, "Rain falls.", "Brigg is here.", "He swears to burn the mill.")
        assert judged(told)[-1].text == "[Brigg] swears to burn the mill."
    spoken = [Turn("t9", 0, "said", "brigg", "Brigg", "I open the chest.", ("dm",)), *silent]
    assert judged(spoken)[-1].text == "[Brigg] swears to burn the mill."
