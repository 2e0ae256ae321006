"""Recall: any heard turn is found by its words at any length of story, indexed or not, and nothing that was not heard plays a part."""

from __future__ import annotations

import random
import time
import unicodedata
from typing import TYPE_CHECKING, Literal, TypeAlias

import pytest

import talekeeper as tk
from talekeeper.recall import terms

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper

Form: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = (tk.Seat("dm", role="dm"), tk.Seat("rogue"), tk.Seat("bard"))
WORDS = [
    "lantern", "harbor", "bridge", "winter", "silver", "ferryman", "promise", "captain", "shadow", "copper", "hollow", "feather",
    "marble", "cellar", "garden", "thunder", "whisper", "anchor", "candle", "forest", "mirror", "saddle", "barrel", "meadow", "castle",
    "dragon", "pepper", "ribbon", "tunnel", "velvet", "wagon", "arrow", "bottle", "crown", "dagger", "engine", "falcon", "glacier",
    "hammer", "island", "jacket", "kettle", "ladder", "magnet", "needle", "orchard", "pirate", "quarry", "river", "statue", "temple",
    "umbrella", "valley", "window", "yellow", "zephyr", "split",
]  # fmt: skip


def sentence(number: int) -> str:
    """A dozen words out of the same few, in an order of its own."""
    chosen = random.Random(number).choices(WORDS, k=12)
    return " ".join(chosen).capitalize() + "."


def phrase(number: int, length: int = 4) -> str:
    """A piece of that sentence."""
    words = sentence(number).rstrip(".").lower().split()
    start = number % (len(words) - length)
    return " ".join(words[start : start + length])


async def found(story: tk.Story, seat: str, query: str, limit: int = 5) -> list[str]:
    return [hit.turn.text for hit in await story.recall(seat, query, limit=limit)]


@pytest.fixture
async def story(keeper: tk.Keeper) -> tk.Story:
    return await keeper.story(KEY, seats=SEATS)


async def test_a_phrase_of_any_heard_turn_finds_it_at_3000_turns(story: tk.Story) -> None:
    await story.append_many([
        tk.Draft("dm", sentence(n), heard_by=(["rogue"], ["bard"], ["rogue", "bard"])[n % 3]) for n in range(2800)
    ])  # fmt: skip
    await story.settle()
    await story.append_many([tk.Draft("dm", sentence(n), heard_by=["rogue"] if n % 2 else ["bard"]) for n in range(2800, 3000)])
    for n in [*range(0, 2800, 97), *range(2790, 3000, 23), 2999]:
        for seat in ("dm", "rogue", "bard"):
            turn = (await story.turns(after=n, limit=1))[0]
            hits = await found(story, seat, phrase(n), limit=3)
            assert (sentence(n) in hits) == (seat in turn.audience), f"turn {n} for {seat}"
    assert (await found(story, "dm", phrase(1234)))[0] == sentence(1234), "the one that has it word for word comes first"


async def test_a_phrase_that_differs_from_a_thousand_turns_by_its_order_alone_finds_its_turn(story: tk.Story) -> None:
    odd = await story.append("dm", "The blue door stands beside the red gate.")
    await story.append_many([tk.Draft("dm", "The red door stands beside the blue gate.") for _ in range(1000)])
    await story.settle()
    assert (await story.recall("rogue", "blue door", limit=1))[0].turn.id == odd.id


QUOTATION = "It is not for you to be the captain of this ship."
QUOTED = (
    "not for you to be the captain",
    "you to be the captain",
    "to be the captain of",
    "the captain of this",
    "captain of this ship",
    "to be the captain of this ship",
    QUOTATION,
)


@pytest.mark.parametrize("others", [5, 2500])
async def test_a_quotation_of_words_that_all_turns_have_finds_its_turn_first(story: tk.Story, others: int) -> None:
    """By the order of its words and by the common ones among them: all turns have what is telling."""
    quoted = await story.append("dm", QUOTATION)
    await story.append_many(
        [tk.Draft("dm", f"The captain looks at the lantern, and it is number {n} for the ship.") for n in range(others)]
    )
    for _ in range(2):
        for query in QUOTED:
            hits = await story.recall("rogue", query)
            assert hits[0].turn.id == quoted.id, query
            assert len(hits) == 5, "and others that share its words behind it"
        await story.settle()


async def test_a_quotation_with_one_telling_word_among_common_ones_finds_its_turn_first(story: tk.Story) -> None:
    few, common = WORDS[:5], "the a of and to in is it was for on with he she they".split()
    rng = random.Random(5)
    texts = [" ".join(rng.choices(common, k=3) + rng.choices(few, k=1) + rng.choices(common, k=4)) + "." for _ in range(3000)]
    await story.append_many([tk.Draft("dm", text, heard_by=["rogue"] if n % 3 else ["bard"]) for n, text in enumerate(texts)])
    await story.settle()
    for number in range(1, 3000, 150):
        query = " ".join(texts[number].split()[1:7])
        hits = await found(story, "rogue", query)
        assert query in hits[0], query
        assert texts[number] in hits or sum(query in text for text in texts) > 5, query


async def test_a_turn_is_quoted_as_it_reads_now_however_many_share_its_words(story: tk.Story) -> None:
    first, second = await story.append_many([tk.Draft("dm", "The captain of the ship."), tk.Draft("dm", QUOTATION)])
    await story.append_many([tk.Draft("dm", f"The captain of the ship looks at it, {n}.") for n in range(1500)])
    for _ in range(2):
        await story.settle()
        assert (await story.recall("rogue", "be the captain of this ship"))[0].turn.id == second.id
        await story.edit(second, "The captain of the ship is gone.")
        await story.edit(first, QUOTATION)
        assert (await story.recall("rogue", "be the captain of this ship"))[0].turn.id == first.id
        first, second = second, first


async def test_what_thousands_of_turns_share_that_a_seat_did_not_hear_changes_nothing(keeper: tk.Keeper, story: tk.Story) -> None:
    other = await keeper.story(tk.MemoryKey("acme", "ana", "other"), seats=SEATS)
    heard = [tk.Draft("dm", f"The captain looks at the {WORDS[n % 40]} of the ship.", heard_by=["rogue"], id=f"{n}") for n in range(1300)]
    heard[7] = tk.Draft("dm", QUOTATION, heard_by=["rogue"], id="7")
    await story.append_many(heard)
    for start in range(0, 1300, 100):
        await other.append_many([tk.Draft("dm", QUOTATION + " Where?", heard_by=["bard"]) for _ in range(100)])
        await other.append_many(heard[start : start + 100])
    await other.settle()
    for query in (*QUOTED, "captain ship", "Where is the captain of the ship?", "captain lantern"):
        one, two = await story.recall("rogue", query, limit=40), await other.recall("rogue", query, limit=40)
        assert one
        assert [(hit.turn.id, hit.score) for hit in one] == [(hit.turn.id, hit.score) for hit in two], query


async def test_recall_is_the_same_before_and_after_indexing_and_after_opening_again(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await keeper.story(KEY, seats=SEATS)
    for start in range(0, 300, 50):
        await story.append_many([tk.Draft("dm", sentence(n), heard_by=["rogue"] if n % 4 == 0 else None) for n in range(start, start + 50)])
    queries = [*(phrase(n) for n in range(0, 300, 41)), "silver lantern", "castle"]
    before = [await story.recall("bard", query, limit=20) for query in queries]
    await story.settle()
    assert [await story.recall("bard", query, limit=20) for query in queries] == before
    await keeper.close()
    again = await (await open_file()).story(KEY)
    assert [await again.recall("bard", query, limit=20) for query in queries] == before


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("老人把银钥匙交给了米拉，说三天后在桥边等她。", "银钥匙"),
        ("老人把银钥匙交给了米拉，说三天后在桥边等她。", "三天后在桥边"),
        ("彼女は古い橋のたもとで鍵を待っていた。", "古い橋"),
        ("은열쇠는 다리 밑에 숨겨져 있었다.", "다리 밑에"),
        ("他说“龙”。", "龙"),
        ("Die Glöckner läuteten die Straße hinunter.", "straße"),
        ("Серебряный ключ лежит под мостом.", "ключ лежит под мостом"),
        ("The innkeeper’s daughter whispered “run”.", "innkeeper's daughter"),
        ("They owe us 4,711 crowns and 12% of the tin.", "4,711 crowns"),
        ("MIRA HID THE BRASS KEYS BEHIND THE ALTAR!!!", "hid the brass keys"),
        ("It is what it is.", "it is what it is"),
        ("黑龙来了，城门关上了。", "龙"),
        ("칼을 들고 다리를 건넜다.", "칼"),
        ("หญิงชราซ่อนกุญแจเงินไว้ใต้สะพาน", "กุญแจเงิน"),
        ("ជនចម្លែកលាក់សោប្រាក់នៅក្រោមស្ពាន", "សោប្រាក់"),
        ("ຍິງແກ່ເຊື່ອງກະແຈເງິນໄວ້ໃຕ້ຂົວ", "ກະແຈເງິນ"),
        ("အဘွားအိုက ငွေသော့ကို တံတားအောက်မှာ ဖွက်ထားတယ်။", "ငွေသော့"),
        ("बूढ़ी औरत ने चाँदी की चाबी पुल के नीचे छिपाई।", "चाँदी की चाबी"),
        ("أخفت العجوز المفتاح الفضي تحت الجسر.", "المفتاح الفضي"),
        ("הזקנה החביאה את מפתח הכסף מתחת לגשר.", "מפתח הכסף"),
        ("Η γριά έκρυψε το ασημένιο κλειδί.", "ασημένιο κλειδί"),
        ("Lão bà giấu chìa khóa bạc dưới gầm cầu.", "chìa khóa bạc"),
        ("Ｍｉｒａ　ｈｉｄ　ｔｈｅ　ｋｅｙ．", "mira hid"),
        ("🐉🔥", "🐉🔥"),
        ("👍", "👍"),
        ("They won with a 🎲 and a 🗡️.", "🎲"),
        ("No_underscores, please: the hidden_door opens.", "hidden door"),
        ("1066: the year of the comet", "1066"),
        ("Le meunier a jeté l'anneau dans le puits.", "anneau"),
        ("Le meunier a jeté un anneau dans le puits.", "l’anneau"),
        ("On dit qu’Elena vit encore ici.", "Elena"),
        ("L'anello d'oro giace nel pozzo.", "oro"),
        ("Drizzt Do'Urden waits at the well.", "Urden"),
    ],
)
async def test_a_phrase_is_found_in_every_script_whatever_case_and_punctuation(story: tk.Story, text: str, query: str) -> None:
    turn = await story.append("dm", text)
    await story.append_many([tk.Draft("dm", sentence(n)) for n in range(300)])
    for _ in range(2):
        hits = await story.recall("rogue", query, limit=1)
        assert [hit.turn.id for hit in hits] == [turn.id]
        await story.settle()


@pytest.mark.parametrize("written", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Die Glöckner läuteten für Zoë.", "glöckner läuteten"),
        ("El niño escondió la llave en Ávila.", "escondió la llave"),
        ("은열쇠는 다리 밑에 있었다.", "다리 밑에"),
        ("ガラスの鍵がパン屋にある。", "ガラスの鍵"),
        ("Đặng giấu chìa khóa ở đây.", "giấu chìa khóa"),
    ],
)
async def test_it_does_not_matter_in_which_form_signs_with_marks_are_written(
    story: tk.Story, text: str, query: str, written: Form, asked: Form
) -> None:
    turn = await story.append("dm", unicodedata.normalize(written, text))
    await story.append_many([tk.Draft("dm", sentence(n)) for n in range(20)])
    assert [hit.turn.id for hit in await story.recall("rogue", unicodedata.normalize(asked, query), limit=1)] == [turn.id]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The wolves took two children.", "wolf child"),
        ("She bought a boat.", "Who buys boats?"),
        ("He sold the horses to the thieves.", "selling a horse to the thief"),
        ("They were hiding, and they hid well.", "hide"),
        ("The berries grew by the churches.", "berry growing at a church"),
        ("Mira's brothers stopped singing.", "the brother stops the song he sings"),
        ("Die Brücke bei Öhringen ist zerstört.", "Welche Brücken?"),
        ("Drei Drachen schlafen.", "Wo ist der Drache?"),
        ("A door of wood.", "Which doors are wooden?"),
    ],
)
async def test_forms_of_a_word_find_each_other(story: tk.Story, text: str, query: str) -> None:
    turn = await story.append("dm", text)
    await story.append_many([tk.Draft("dm", "Nothing of the kind.") for _ in range(20)])
    hits = await story.recall("rogue", query, limit=1)
    assert [hit.turn.id for hit in hits] == [turn.id]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我把剑给了李将军。", "剑在哪里？"), ("龙睡在塔里。", "龙在哪里"), ("我把剑给了李将军。", "谁有剑"), ("鍵は箱の中にある。", "鍵はどこですか"),
        ("칼을 상자에 넣었다.", "칼은 어디"),
    ],
)  # fmt: skip
async def test_a_word_of_one_sign_is_found_by_a_question_about_it(story: tk.Story, text: str, query: str) -> None:
    turn = await story.append("dm", text)
    await story.append_many([tk.Draft("dm", filler) for filler in ("我们在这里休息。", "ここで休みます。", "여기서 쉰다.") * 8])
    assert (await story.recall("rogue", query, limit=1))[0].turn.id == turn.id


@pytest.mark.parametrize(
    ("marked", "bare"),
    [
        ("Artémis", "Artemis"),
        ("Artemis\u0301", "artemis"),
        ("Zoë’s lantern", "Zoe's lantern"),
        ("les Sœurs grises d'Orléans", "les soeurs grises d'Orleans"),
        ("Đà Nẵng", "da nang"),
        ("Łódź", "LODZ"),
        ("bjørnen på fjället", "bjornen pa fjallet"),
        ("Les résumées d’Hélène", "resumees d'Helene"),
    ],
)
async def test_marks_on_latin_letters_may_be_left_out_or_put_in(story: tk.Story, marked: str, bare: str) -> None:
    with_marks = await story.append("dm", f"{marked}: the copper kettle.")
    await story.append_many([tk.Draft("dm", sentence(n)) for n in range(300)])
    without = await story.append("dm", f"{bare}: the copper ladder.")
    for _ in range(2):
        assert {hit.turn.id for hit in await story.recall("rogue", bare, limit=2)} == {with_marks.id, without.id}
        assert [hit.turn.id for hit in await story.recall("rogue", marked, limit=2)] == [with_marks.id, without.id]
        await story.settle()


@pytest.mark.parametrize(
    ("text", "other"),
    [("мой меч", "мои меч"), ("νόμος", "νομός"), ("ばら", "はら"), ("की", "का"), ("كتب", "كتّب"), ("שׁר", "שׂר"), ("ёж", "еж")],
)
async def test_marks_that_make_other_words_are_left_alone(story: tk.Story, text: str, other: str) -> None:
    await story.append_many([tk.Draft("dm", other) for _ in range(3)])
    turn = await story.append("dm", text)
    await story.append_many([tk.Draft("dm", other) for _ in range(3)])
    assert [hit.turn.id for hit in await story.recall("rogue", text, limit=1)] == [turn.id]


async def test_a_word_with_its_marks_finds_its_turn_among_thousands_that_differ_by_marks_alone(story: tk.Story) -> None:
    turn = await story.append("dm", "Une pêche miraculeuse, dit-il.")
    await story.append_many([tk.Draft("dm", f"Un péché miraculeux, {n} fois.") for n in range(2500)])
    for query in ("pêche", "pêche miraculeuse"):
        for _ in range(2):
            assert [hit.turn.id for hit in await story.recall("rogue", query, limit=1)] == [turn.id]
            await story.settle()


async def test_turns_that_were_indexed_without_such_words_are_found_as_they_are_written(
    open_file: OpenKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a file of an earlier version."""
    keeper = await open_file()
    story = await keeper.story(KEY, seats=SEATS)
    with monkeypatch.context() as earlier:
        earlier.setattr(terms, "index_terms", lambda text, voice, kind="said": dict.fromkeys(terms.words(f"{voice} {text}")))
        marked = await story.append("dm", "Artémis garde la forêt sacrée.")
        bare = await story.append("dm", "Artemis guards the mill.")
        await story.append_many([tk.Draft("dm", "La forêt garde Artémis sacrée.") for _ in range(400)])
        await story.settle()
        await keeper.close()
    story = await (await open_file()).story(KEY)
    await story.append_many([tk.Draft("dm", f"La foret garde Artemis sacree, {n}.") for n in range(400)])
    for _ in range(2):
        assert [hit.turn.id for hit in await story.recall("rogue", "Artémis garde la forêt", limit=1)] == [marked.id]
        assert [hit.turn.id for hit in await story.recall("rogue", "Artémis guards", limit=1)] == [bare.id]
        await story.settle()


async def test_a_phrase_is_found_first_also_where_its_marks_are_not_the_same(story: tk.Story) -> None:
    turn = await story.append("dm", "Hélène a caché la clé dans la forêt.")
    await story.append_many([tk.Draft("dm", "La forêt a caché Hélène, dans la clé.") for _ in range(50)])
    assert [hit.turn.id for hit in await story.recall("rogue", "Helene a cache la cle", limit=1)] == [turn.id]
    bare = await story.append("dm", "Helene a cache la cle, again.")
    await story.append_many([tk.Draft("dm", "La forêt a caché Hélène, dans la clé.") for _ in range(50)])
    assert [hit.turn.id for hit in await story.recall("rogue", "Helene a cache la cle", limit=2)] == [bare.id, turn.id]
    assert [hit.turn.id for hit in await story.recall("rogue", "Hélène a caché la clé", limit=2)] == [turn.id, bare.id]


@pytest.mark.parametrize(("told", "asked"), ["’'", "'’", "’’"])
async def test_a_phrase_is_found_first_whichever_apostrophe_it_is_written_with(story: tk.Story, told: str, asked: str) -> None:
    turn = await story.append("dm", f"It was Maud{told}s iron key, and nothing else, that ever opened the cellar under the Salt Lantern.")
    await story.append_many([tk.Draft("dm", f"The key of iron, Maud. {n}") for n in range(12)])
    assert [hit.turn.id for hit in await story.recall("rogue", f"Maud{asked}s iron key", limit=1)] == [turn.id]


async def test_edited_turns_are_found_with_and_without_marks(story: tk.Story) -> None:
    turn, other = await story.append_many([tk.Draft("dm", "The mill."), tk.Draft("dm", "The gate.")])
    await story.edit(turn, "Artémis sleeps.")
    await story.edit(other, "Artemis wakes.")
    assert {hit.turn.id for hit in await story.recall("rogue", "Artemis")} == {turn.id, other.id}
    assert [hit.turn.id for hit in await story.recall("rogue", "Artémis")] == [turn.id, other.id]


async def test_a_speaker_is_named_with_or_without_marks(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=[*SEATS, tk.Seat("zoe", name="Zoë")])
    await story.append("dm", "The brass key is lost.")
    said = await story.append("zoe", "The brass key is mine.")
    await story.append("dm", "The brass key is gone.")
    assert (await story.recall("rogue", "What did Zoe say of the brass key?"))[0].turn.id == said.id


SCRIPTS = {
    "thai": (0x0E01, 0x0E2E), "khmer": (0x1780, 0x17A2), "lao": (0x0E81, 0x0EAE), "burmese": (0x1000, 0x1021), "han": (0x4E00, 0x4F00),
    "kana": (0x3042, 0x3093), "hangul": (0xAC00, 0xAD00), "hindi": (0x0915, 0x0939), "cyrillic": (0x0430, 0x044F), "emoji": (0x1F600, 0x1F640),
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
async def test_in_every_script_a_phrase_of_any_of_a_thousand_turns_finds_it(story: tk.Story, script: str) -> None:
    """Random signs of a script, written without a blank where the script has none."""
    first, last = SCRIPTS[script]
    rng = random.Random(script)
    gap = " " if script in ("hindi", "cyrillic", "hangul") else ""
    texts = [gap.join("".join(chr(rng.randint(first, last)) for _ in range(5)) for _ in range(8)) for _ in range(1000)]
    turns = await story.append_many([tk.Draft("dm", text) for text in texts])
    for number in (0, 499, 999):
        text = texts[number]
        piece = text[12:30].strip() if not gap else gap.join(text.split(gap)[2:5])
        assert [hit.turn.id for hit in await story.recall("rogue", piece, limit=1)] == [turns[number].id]


async def test_turns_are_found_by_who_spoke(story: tk.Story) -> None:
    await story.append("dm", "Nothing here.", voice="Old Brannoc")
    await story.append("dm", "Nothing there.")
    assert await found(story, "rogue", "Brannoc") == ["Nothing here."]


@pytest.mark.parametrize("settled", [True, False], ids=["indexed", "in the tail"])
async def test_an_edited_turn_is_found_by_its_new_words_and_not_by_the_old(story: tk.Story, settled: bool) -> None:
    turn = await story.append("dm", "The zanzibar lies at anchor.")
    secret = await story.append("dm", "The quixote is a secret.", heard_by=["rogue"])
    await story.append_many([tk.Draft("dm", sentence(n)) for n in range(300 if settled else 10)])
    await story.settle()
    await story.edit(turn, "The wolfram lies at anchor.")
    await story.edit(secret, "The wolfram is a secret.")
    if settled:
        await story.append_many([tk.Draft("dm", sentence(n)) for n in range(300, 600)])
        await story.settle()
    assert await found(story, "bard", "zanzibar") == []
    assert await found(story, "bard", "wolfram") == ["The wolfram lies at anchor."]
    assert sorted(await found(story, "rogue", "wolfram")) == ["The wolfram is a secret.", "The wolfram lies at anchor."]
    assert await found(story, "rogue", "quixote") == []
    (hit,) = await story.recall("bard", "wolfram")
    assert (hit.turn.id, hit.turn.revision) == (turn.id, 1)


async def test_an_edit_that_a_rewind_undid_is_not_found(story: tk.Story) -> None:
    turn = await story.append("dm", "The zanzibar lies at anchor.")
    await story.edit(turn, "The wolfram lies at anchor.")
    await story.settle()
    await story.rewind(1)
    assert await found(story, "bard", "wolfram") == []
    assert await found(story, "bard", "zanzibar") == ["The zanzibar lies at anchor."]


@pytest.mark.parametrize("turns", [10, 400])
async def test_a_forgotten_turn_is_not_found_by_any_of_its_words(story: tk.Story, turns: int) -> None:
    turn = await story.append("dm", "The zanzibar lies at anchor.")
    await story.append_many([tk.Draft("dm", sentence(n)) for n in range(turns)])
    await story.settle()
    await story.edit(turn, "The zanzibar lies at wolfram.")
    await story.forget(turn)
    for query in ("zanzibar", "wolfram", "The zanzibar lies at anchor"):
        assert not [text for text in await found(story, "rogue", query, limit=50) if "zanzibar" in text]
    assert await found(story, "rogue", "zanzibar") == []


async def test_a_turn_that_was_rewound_is_not_found_and_is_found_again_on_its_branch(story: tk.Story) -> None:
    await story.append("dm", "Before.")
    await story.append("dm", "The zanzibar lies at anchor.")
    await story.append_many([tk.Draft("dm", sentence(n)) for n in range(300)])
    await story.settle()
    await story.rewind(1)
    assert await found(story, "rogue", "zanzibar") == []
    left = next(branch for branch in await story.branches() if not branch.current)
    assert await found(await story.switch(left.name), "rogue", "zanzibar") == ["The zanzibar lies at anchor."]


async def test_ranking_counts_only_what_the_seat_heard(keeper: tk.Keeper, story: tk.Story) -> None:
    other = await keeper.story(tk.MemoryKey("acme", "ana", "other"), seats=SEATS)
    heard = [tk.Draft("dm", sentence(n), heard_by=["rogue"], id=f"turn-{n}") for n in range(60)]
    await story.append_many(heard)
    for draft in heard:
        await other.append_many([tk.Draft("dm", "Silver lantern, silver lantern! " * 5, heard_by=["bard"]) for _ in range(8)])
        await other.append_many([draft])
    await other.settle()
    for query in ("silver lantern", "castle bridge", phrase(7), "harbor"):
        one, two = await story.recall("rogue", query, limit=40), await other.recall("rogue", query, limit=40)
        assert one
        assert [(hit.turn.id, hit.score) for hit in one] == [(hit.turn.id, hit.score) for hit in two]


async def test_rarer_words_weigh_more_and_scores_fall(story: tk.Story) -> None:
    await story.append_many([tk.Draft("dm", f"The castle is quiet on day {n}.") for n in range(50)])
    rare = await story.append("dm", "The zanzibar came in at noon.")
    hits = await story.recall("rogue", "castle zanzibar", limit=10)
    assert hits[0].turn.id == rare.id
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


async def test_of_equal_turns_the_newest_comes_first(story: tk.Story) -> None:
    turns = []
    for number in range(5):
        turns.append(await story.append("dm", "The gate is shut.", when=f"Day {'abcde'[number]}"))
        await story.append_many([tk.Draft("dm", sentence(number * 16 + n)) for n in range(15)])  # so that none lends to another
    hits = await story.recall("rogue", "gate shut", limit=3)
    assert [hit.turn.id for hit in hits] == [turn.id for turn in turns[:1:-1]]


async def test_what_was_said_several_times_is_recalled_once_and_others_take_the_place(story: tk.Story) -> None:
    for number in range(5):
        newest = await story.append("dm", "The gate is shut.")
        await story.append_many([tk.Draft("dm", sentence(number * 16 + n)) for n in range(15)])  # so that none lends to another
    others = [await story.append("rogue", "The gate is shut."), await story.append("dm", "The gate is shut, and so is the inn.")]
    hits = await story.recall("rogue", "gate shut", limit=3)
    assert {hit.turn.id for hit in hits} == {newest.id, *(turn.id for turn in others)}


async def test_no_more_than_the_limit_is_returned(story: tk.Story) -> None:
    await story.append_many([tk.Draft("dm", f"The gate is shut on day {n}.") for n in range(30)])
    assert len(await story.recall("rogue", "gate")) == 5
    for limit in (0, 1, 7, 30):
        assert len(await story.recall("rogue", "gate", limit=limit)) == limit
    assert len(await story.recall("rogue", "gate", limit=10_000)) == 30


@pytest.mark.parametrize(
    "query", ["?!… — ***", "🎲", "zyxwvut", "'", '"', "NEAR(", "a* OR b", "gate AND", "col:gate NOT", "^", "%", "\\", "--"]
)
async def test_odd_queries_are_only_words(story: tk.Story, query: str) -> None:
    await story.append("dm", "The gate is shut.")
    await story.settle()
    hits = await found(story, "rogue", query)
    assert hits == (["The gate is shut."] if "gate" in query else [])


@pytest.mark.parametrize("query", ["", "   ", "\n"])
async def test_a_blank_query_is_refused(story: tk.Story, query: str) -> None:
    with pytest.raises(tk.InvalidInput, match="query is blank"):
        await story.recall("rogue", query)


async def test_an_empty_story_recalls_nothing(story: tk.Story) -> None:
    assert await story.recall("rogue", "anything at all") == []


async def test_a_very_long_query_is_answered_in_time(story: tk.Story) -> None:
    await story.append_many([tk.Draft("dm", sentence(n)) for n in range(500)])
    await story.settle()
    query = " ".join(f"{WORDS[n % len(WORDS)]}{n}" for n in range(6000)) + " " + sentence(42)
    start = time.perf_counter()
    hits = await story.recall("rogue", query)
    assert time.perf_counter() - start < 5
    assert hits[0].turn.text == sentence(42)


async def test_moves_sessions_and_notes_can_be_recalled_and_edits_and_pins_cannot(story: tk.Story) -> None:
    await story.enter("rogue", "zanzibar")
    await story.note("Zanzibar is an island.")
    turn = await story.append("rogue", "So this is zanzibar.")
    await story.pin(turn)
    await story.edit(turn, "So this is Zanzibar!")
    kinds = sorted(hit.turn.kind for hit in await story.recall("rogue", "zanzibar", limit=10))
    assert kinds == ["enter", "note", "said"]
