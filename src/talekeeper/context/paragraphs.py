"""Folds as paragraphs that fit a room, with the turns they stand for. Pure.

Older is coarser, whatever the room: where it is wide, larger folds give way to smaller ones, the newest first, and at last to the turns
themselves; where it is narrow, the oldest are condensed into one digest. A fold that has nothing to tell (someone came, someone went)
takes no line of its own: it stands under its neighbour's. Every turn stays under exactly one item (I1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from talekeeper.context.rendering import defuse, label, line, render
from talekeeper.folds.nodes import Missing, Node, Path, Ref, Shown, extract, in_order, span_of, unpack_sentences, visible_text
from talekeeper.folds.state import State
from talekeeper.model import Fold, Item, Sentence, Turn, new_item
from talekeeper.ports import TextRecord, TokenCounter
from talekeeper.recent import Recent
from talekeeper.summarize import extractive
from talekeeper.summarize.attribution import is_aloud, quotation, speak_on, spoken_by
from talekeeper.summarize.choice import rank
from talekeeper.summarize.words import is_wide
from talekeeper.tokens import estimate_tokens

NEWEST = 0.25
"""How much of a narrow room the newest folds may take as they are; the rest is for the digest of all that is older."""
FAR, FAR_SHARE = 2, 0.45
"""What is long past: all up to the newest fold of that level. And how much of a large room it has in a digest of its own."""
WIDER = 0.7
"""How much of what is left goes to the largest fold that there was no room to take apart: the past is no coarser than it need be."""
SHORTEST = 4
"""Hardly a fold takes fewer tokens. Where there are more of them than so many would let in, most have nothing to tell: they are not worth
taking apart, as they take no room and there may be any number of them."""
LARGE = 1000
"""From this room up, a sentence more or less is not worth telling anew what was told before."""
PLACED = 0.85
"""How much of a large room is tried first for a digest in which places are named, since they will take the rest."""
OWN, OF_WEIGHT = 3.0, 6.0
"""How much more a sentence weighs, in a room that is not large, if the one who remembers spoke it (my promises, my debts); and what it must
weigh by itself for that."""
_NOTHING: frozenset[str] = frozenset()
BRAIDED = 4
"""At most so many chunks of several channels are told together in one paragraph."""
QUIET = 1.0
"""What a sentence must be worth at the least for a fold to take a line of its own."""


class Line:
    """A heard turn, rendered and counted once. `tokens`: its count, where that is known; `shown`: how it reads, likewise."""

    __slots__ = ("_counter", "_item", "_shown", "_tokens", "_undated", "seq", "turn")

    def __init__(self, turn: Turn, counter: TokenCounter, tokens: int | None = None, shown: str = "") -> None:
        self._counter = counter
        self._tokens = tokens
        self._shown = shown
        self._item: Item | None = None
        self._undated: Item | None = None
        self.turn = turn
        self.seq = turn.seq

    @property
    def item(self) -> Item:
        if self._item is None:
            text = self._shown or (line(self.turn) if self.turn.text else "")
            self._item = self._made(text, self._tokens)
        return self._item

    @property
    def undated(self) -> Item:
        """The line without its time, for where that stands above it."""
        if self._undated is None:
            turn = self.turn
            self._undated = self.item if turn.when is None else self._made(render(turn.kind, turn.voice, turn.text), None)
        return self._undated

    def _made(self, text: str, tokens: int | None) -> Item:
        tokens = (self._counter.count(text) if text else 0) if tokens is None else tokens
        return new_item((text, tokens, "turn", (self.turn.id,), (), 1, False))


class Digest(NamedTuple):
    """Many folds in one paragraph (None where not even a word fits), the sentences in it, and the folds' own items."""

    item: Item | None
    texts: frozenset[str]
    of: Sequence[Item]


Digests: TypeAlias = "Recent[tuple[str | int, ...], Digest]"
"""Digests by who remembers, their room, the identities of the items they stand for, and what was told before and is left out."""


@dataclass(slots=True)
class Sources:
    """What a plan reads from: folds and lines that are in memory (else `Missing`), the path, the counter."""

    state: State
    path: Path
    lines_of: Callable[[Sequence[Ref]], list[Line]]
    count: Callable[[str], int]
    name_of: Callable[[str], str]
    """A fold's name for the outside, by its key."""
    digests: Digests
    """Those that were made before."""
    modelled: Callable[[], int] = lambda: 1 << 60
    """A model's text is shown for folds closed no later than this entry: others may have had one made (I3). Asked if there is one."""
    own: str = ""
    """Who remembers, by name: what they said themselves comes first where little fits."""

    def turns_of(self, refs: Sequence[Ref]) -> list[Turn]:
        return [one.turn for one in self.lines_of(refs)]

    def seen_by(self, own: str, modelled: Callable[[], int]) -> Sources:
        """The same for one who remembers."""
        return Sources(self.state, self.path, self.lines_of, self.count, self.name_of, self.digests, modelled, own)

    def children_of(self, node: Node) -> list[Node]:
        return self.state.shelf.children(node)

    def all_children_of(self, nodes: Sequence[Node]) -> list[Node]:
        """The children of several folds, all of which are asked for at once where they are missing."""
        absent = [key for node in nodes for key in node.children if self.state.shelf.get(key) is None]
        if absent:
            raise Missing(folds=absent)
        return [child for node in nodes for child in self.children_of(node)]

    def text_of(self, node: Node) -> TextRecord | None:
        """The model's text that is to be shown for the fold; None where the author's or the extractive one is."""
        return None if node.author or not node.texts or node.closed > self.modelled() else visible_text(node, self.path)

    def sentences(self, node: Node) -> tuple[Sentence, ...]:
        """The fold's text as it is to be shown: the author's, else a model's, else the extractive one."""
        text = self.text_of(node)
        return unpack_sentences(text.sentences) if text is not None else extract(node, self.children_of, self.turns_of)


# -- one fold ----------------------------------------------------------------------------------------------------------


def _shown(node: Node, sources: Sources) -> Shown:
    """What is known of the fold as it is to be shown now."""
    text = sources.text_of(node) if node.texts else None
    shown = node.shown
    if shown is None or shown.text is not text:
        sentences = sources.sentences(node)
        quiet = bool(sentences) and all(0 < sentence.weight < QUIET for sentence in sentences)
        plain = text is None and not node.author and bool(sentences)  # else it is not known of each sentence when it was
        first, last = span_of(node, sentences) if plain else (0, 0)
        texts = frozenset([sentence.text for sentence in sentences]) if plain else _NOTHING
        shown = node.shown = Shown(text, quiet, texts, first, last, {})
    return shown


def fold_item(node: Node, sources: Sources, *, placed: bool = True, without: frozenset[str] = _NOTHING) -> Item:
    """The fold as a paragraph, with or without its place, `without` some sentences. Rendered and counted once, as long as the same text is
    to be shown."""
    items = _shown(node, sources).items
    placed = placed and bool(node.location)
    key = (placed, without) if without else placed
    item = items.get(key)
    if item is None:
        item = items[key] = _paragraph(node, placed, sources, without)
    return item


def _paragraph(node: Node, placed: bool, sources: Sources, without: frozenset[str]) -> Item:
    sentences = [sentence for sentence in sources.sentences(node) if sentence.text not in without]
    place = f"({label(node.location or '')}) " if placed else ""
    text = f"- {place}{defuse(flow(sentences))}\n" if sentences else ""
    cited = [ref.id for ref in node.refs] if node.level == 0 else [source for s in sentences for source in s.sources]
    lasting = node.level > 0 or node.closer != ""
    return Item(
        text=text, tokens=sources.count(text) if text else 0, kind="fold", sources=tuple(dict.fromkeys(cited)),
        folds=(sources.name_of(node.key),) if lasting else (), turn_count=node.turn_count,
    )  # fmt: skip


def flow(sentences: Iterable[Sentence]) -> str:
    """Sentences as running text: who speaks on is not named again, and a place is named where it changes."""
    told: list[str] = []
    place = speaker = ""
    before: tuple[str, ...] = ()
    for text, sources, _, _, _, where, _ in sentences:
        by, quoted = quotation(text)
        if where and where != place:
            place = where
            told += (f"({label(place)})", text)
        elif by and by == speaker and (sources == before or is_aloud(by)):
            told[-1] = speak_on(told[-1], quoted, same_turn=sources == before)
        else:
            told.append(text)
        speaker, before = by, sources
    return " ".join(told).lstrip()


def as_fold(node: Node, sources: Sources) -> Fold:
    """The fold as a noun."""
    made_by: Literal["author", "model", "extractive"] = "author" if node.author else "model" if sources.text_of(node) else "extractive"
    children = tuple(map(sources.name_of, node.children)) or tuple(ref.id for ref in node.refs)
    return Fold(
        id=sources.name_of(node.key), level=node.level, made_by=made_by, sentences=sources.sentences(node), children=children,
        turn_count=node.turn_count, location=node.location,
    )  # fmt: skip


# -- folds into a room -------------------------------------------------------------------------------------------------


Unfold: TypeAlias = Literal["all", "unless a model", "none"]
"""Which folds may be shown as the turns they stand for, where there is room: all, all but those that a model wrote, none."""


def fit(nodes: Sequence[Node], room: int, sources: Sources, unfold: Unfold = "all") -> list[Item]:
    """The folds as items that fit the room together."""
    for hush in (True, False):
        items = _Fitting(sources, hush, unfold, room >= LARGE).fit(nodes, room)
        if sum(item.tokens for item in items) <= room:
            break
    return items


@dataclass(slots=True)
class _Fitting:
    """Folds on their way into a room, which may be `large`. `hush`: those that have nothing to tell take no room."""

    sources: Sources
    hush: bool
    unfold: Unfold
    large: bool
    wider: dict[str, Digest] = field(default_factory=dict)

    def cost(self, node: Node) -> int:
        shown = _shown(node, self.sources)
        return 0 if self.hush and shown.quiet else (shown.items.get(bool(node.location)) or fold_item(node, self.sources)).tokens

    def fit(self, nodes: Sequence[Node], room: int) -> list[Item]:
        spare = room - sum(map(self.cost, nodes))
        if spare < 0:
            return self._condense(nodes, room)
        fine, spare = self._refine(nodes, spare, room)
        whole = self.unfold == "none" or any(node.level for node in fine)
        return self._paragraphs(fine if whole else self._unfold(fine, spare))

    def _refine(self, nodes: Sequence[Node], spare: int, room: int) -> tuple[list[Node], int]:
        """Smaller folds in the place of larger ones, the largest first, of these the newest first, while some of the room is to spare."""
        fine, most, step = list(nodes), room // SHORTEST, room // 8 if self.large else 1
        for level in range(max((node.level for node in nodes), default=0), 0, -1):
            for at in range(len(fine) - 1, -1, -1):
                node = fine[at]
                if node.level != level or node.author:
                    continue
                if len(fine) > most:
                    break
                finer = self.sources.children_of(node)
                more = sum(map(self.cost, finer)) - self.cost(node)
                if more > spare:
                    spare -= self._widen(node, finer, int(spare * WIDER) // step * step)
                    break
                spare -= more
                fine[at : at + 1] = finer
        return sorted(fine, key=lambda node: node.first), spare

    def _widen(self, node: Node, finer: Sequence[Node], more: int) -> int:
        """Tells a fold at more length than its own text, from the smaller ones in it, and returns how much more room that takes.

        `more` comes in steps, so that the fold is told the same way again, and need not be told anew, while the newest come and go."""
        if not more or self.wider or self.sources.text_of(node) is not None:
            return 0
        before = self.cost(node)
        digest = self._digest(finer, before + more)
        if digest.item is None or digest.item.tokens <= before:
            return 0
        self.wider[node.key] = digest
        return digest.item.tokens - before

    def _unfold(self, nodes: Sequence[Node], spare: int) -> list[Node | Line]:
        """The folds, all of them as small as can be, in order; the newest as the turns they stand for, while there is room."""
        placed: list[tuple[int, Node | Line]] = []
        full = False
        for node in reversed(nodes):
            if self.unfold == "unless a model" and self.sources.text_of(node) is not None:
                placed.append((node.first, node))
                continue
            cost = self.cost(node)
            full = full or node.author or node.tokens > spare + cost
            lines = [] if full else self.sources.lines_of(node.refs)
            more = sum(line.item.tokens for line in lines) - cost
            full = full or more > spare
            if full:
                placed.append((node.first, node))
            else:
                spare -= more
                placed += [(line.seq, line) for line in lines if line.item.text]
        return [one for _, one in sorted(placed, key=lambda row: row[0])]

    def _condense(self, nodes: Sequence[Node], room: int) -> list[Item]:
        """The newest as they are, in their part of the room; everything older in a digest. In a large room there are two: of what is long
        past, which stays the same for long, and of what came after that, unless it fits as it is. None where not even a word fits.

        What the newest take is rounded up, so that a digest stays as it is, at the head of the story, while they come and go (I8)."""
        kept, size = len(nodes), 0
        while kept > 0 and size + self.cost(nodes[kept - 1]) <= room * NEWEST:
            kept -= 1
            size += self.cost(nodes[kept])
        step = max(1, room // 8)
        taken = max(size, min(int(room * NEWEST), -(-size // step) * step))
        left, far_room = room - taken, int(room * FAR_SHARE)
        near = next((at for at in range(kept, 0, -1) if nodes[at - 1].level >= FAR), 0) if self.large else 0
        if not 0 < near < kept:
            digests = [self._digest(nodes[:kept], left)]
        else:
            digests = [self._digest(nodes[:near], far_room)]
            if sum(map(self.cost, nodes[near:kept])) <= left - far_room:
                kept = near
            else:
                digests.append(self._digest(nodes[near:kept], left - far_room, digests[0].texts))
        told = [digest.item for digest in digests if digest.item is not None]
        said = frozenset[str]().union(*(digest.texts for digest in digests))
        return self._paragraphs(nodes[kept:], told, said) if len(told) == len(digests) else []

    def _digest(self, nodes: Sequence[Node], room: int, told: frozenset[str] = _NOTHING) -> Digest:
        """All that the folds tell, in one paragraph, without what was told before. Made once, as long as the same is to be told."""
        sources = self.sources
        items, own = [fold_item(node, sources) for node in nodes], "" if self.large else sources.own
        again = frozenset[str]().union(*(_shown(node, sources).texts & told for node in nodes)) if told else _NOTHING
        key: tuple[str | int, ...] = (own, self.large, room, *map(id, items), *sorted(again))
        known = sources.digests.get(key)
        if known is None:
            known = _make_digest(nodes, items, room, own, sources, again, large=self.large)
            sources.digests.put(key, known)
        return known

    def _paragraphs(self, parts: Sequence[Node | Line], items: Sequence[Item] = (), said: frozenset[str] = _NOTHING) -> list[Item]:
        """The items of folds and turns, in order, behind `items`, which have told what is `said`. What has nothing to tell goes under the
        fold before it, else the one after it; nothing is told in the same words by two of them."""
        items, place, silent, told = list(items), None, list[Item](), set(said)
        last = len(items) - 1  # the newest fold
        for part in self._braided(parts):
            if isinstance(part, Line):
                items.append(part.item)
                place = None
                continue
            first = _shown(part[0], self.sources)
            wider = self._wide(part[0], told)
            texts = wider.texts if wider else first.texts
            if len(part) > 1:
                texts = texts.union(*[_shown(node, self.sources).texts for node in part[1:]])
            if (texts and texts <= told) or (self.hush and first.quiet):
                for node in part:
                    if last < 0:
                        silent.append(fold_item(node, self.sources))
                    else:
                        items[last] = _under(items[last], fold_item(node, self.sources))
                continue
            again = texts & told
            if len(part) == 1:
                (node,) = part
                item = (wider and wider.item) or fold_item(node, self.sources, placed=node.location != place, without=again)
                place = node.location
            else:
                item, place = _braid(part, self.sources, again), None
            for before in silent:
                item = _under(item, before)
            items.append(item)
            told |= texts
            last, silent = len(items) - 1, []
        return [*silent, *items]

    def _wide(self, node: Node, told: Collection[str]) -> Digest | None:
        """The fold as it is told at more length, without what was told before; None where it is not told so."""
        wider = self.wider.get(node.key)
        if wider is not None and wider.item is not None and not wider.texts.isdisjoint(told):
            wider = self._digest(self.sources.children_of(node), wider.item.tokens, frozenset(told))
        return wider if wider is not None and wider.item is not None else None

    def _braided(self, parts: Sequence[Node | Line]) -> Iterator[Line | list[Node]]:
        """The parts, in order; a few chunks of several channels whose sentences are of the same time go together."""
        group, until, quiet = list[Node](), 0, list[list[Node]]()
        for part in parts:
            if isinstance(part, Line):
                if group:
                    yield group
                yield from quiet
                yield part
                group, until, quiet = [], 0, []
                continue
            shown = _shown(part, self.sources)
            if self.hush and shown.quiet:
                quiet.append([part])
                continue
            alone = not shown.texts or part.key in self.wider
            if group and (alone or shown.first >= until or len(group) >= BRAIDED):
                yield group
                yield from quiet
                group, until, quiet = [], 0, []
            group.append(part)
            until = 0 if alone else max(until, shown.last)
        if group:
            yield group
        yield from quiet


def _braid(nodes: Sequence[Node], sources: Sources, without: frozenset[str]) -> Item:
    """Some folds as one paragraph, sentence by sentence in the order of what they tell: what one channel heard may be the cause of what
    another did. Rendered once; takes no more room than they do by themselves."""
    items, key = _shown(nodes[0], sources).items, (*(node.key for node in nodes), *sorted(without))
    item = items.get(key)
    if item is None:
        parts = [fold_item(node, sources) for node in nodes]
        sentences = [one for one in in_order((node, sources.sentences(node)) for node in nodes) if one.text not in without]
        text, tokens = _told(sentences, sources)
        room = sum(part.tokens for part in parts)
        if tokens > room:
            text, tokens = _told([one._replace(place="") for one in sentences], sources)
        if tokens > room:  # by a counter for which a whole has more than its parts
            text, tokens = "".join(part.text for part in parts), room
        cited = tuple(dict.fromkeys([source for part in parts for source in part.sources]))
        names = tuple([name for part in reversed(parts) for name in part.folds])
        item = items[key] = new_item((text, tokens, "fold", cited, names, sum([part.turn_count for part in parts]), False))
    return item


def _under(item: Item, quiet: Item) -> Item:
    """The item, standing for the other as well."""
    return item._replace(
        sources=tuple(dict.fromkeys((*quiet.sources, *item.sources))), folds=(*item.folds, *quiet.folds),
        turn_count=item.turn_count + quiet.turn_count,
    )  # fmt: skip


def _own_first(sentences: Sequence[Sentence], own: str) -> list[Sentence]:
    """The sentences, those that matter and were spoken by the one who remembers being worth more."""
    if not own:
        return list(sentences)
    return [
        sentence._replace(weight=sentence.weight + OWN) if sentence.weight >= OF_WEIGHT and spoken_by(sentence.text) == own else sentence
        for sentence in sentences
    ]


def _make_digest(
    nodes: Sequence[Node], items: Sequence[Item], room: int, own: str, sources: Sources, without: frozenset[str], *, large: bool
) -> Digest:
    everything = in_order((node, sources.sentences(node)) for node in nodes)
    sentences = _own_first([sentence for sentence in everything if sentence.text not in without], own)
    known = tuple(dict.fromkeys(name for node in nodes for name in node.known))
    limit = int(room * PLACED) if large and any(sentence.place for sentence in sentences) else room - 2
    limit = _as_estimated(limit, sentences, sources.count)
    chosen: Sequence[Sentence] = ()
    text, tokens = "", room + 1
    while tokens > room and limit > 0 and sentences:
        whole = _merged(sentences, limit, known, sources)
        cut = _cut(whole, room, sources)
        if not large and 0 < (over := whole.tokens - room) < limit:  # with their places; others may make better use of the room
            others = _cut(_merged(sentences, limit - over, known, sources), room, sources)
            cut = others if others.tokens <= room and _tell_more(others.sentences, cut.sentences) else cut
        chosen, text, tokens = cut
        limit = min(limit - 1, int(limit * room / max(1, tokens) * 0.95))
    if tokens > room:
        if sentences:
            return Digest(None, _NOTHING, items)
        text, tokens = "", 0
    item = Item(
        text=text, tokens=tokens, kind="digest", sources=tuple(dict.fromkeys(source for item in items for source in item.sources)),
        folds=tuple(key for item in items for key in item.folds), turn_count=sum(node.turn_count for node in nodes),
    )  # fmt: skip
    return Digest(item, frozenset([sentence.text for sentence in chosen]), items)


def _as_estimated(limit: int, sentences: Sequence[Sentence], count: Callable[[str], int]) -> int:
    """A limit as it is for estimates: where these are far above what is counted, in Russian or Chinese, a room would be left half empty."""
    whole = " ".join([sentence.text for sentence in sentences])
    return max(limit, limit * estimate_tokens(whole) // max(1, count(whole))) if is_wide(whole) else limit


def _told(sentences: Sequence[Sentence], sources: Sources) -> tuple[str, int]:
    """The sentences as a paragraph, and its tokens."""
    text = f"- {defuse(flow(sentences))}\n"
    return text, sources.count(text)


class _Telling(NamedTuple):
    """Sentences, and the paragraph that they make."""

    sentences: Sequence[Sentence]
    text: str
    tokens: int


def _merged(sentences: Sequence[Sentence], limit: int, known: Sequence[str], sources: Sources) -> _Telling:
    """Those of some sentences that matter most, within a limit that knows of no places."""
    chosen = extractive.merge(sentences, limit=limit, known=known)
    return _Telling(chosen, *_told(chosen, sources))


def _cut(telling: _Telling, room: int, sources: Sources) -> _Telling:
    """The same without the least of its sentences, if they are too many for the room."""
    while telling.tokens > room and len(telling.sentences) > 1:
        left = _without_least(telling.sentences, telling.tokens - room)
        telling = _Telling(left, *_told(left, sources))
    return telling


def _tell_more(others: Sequence[Sentence], chosen: Sequence[Sentence]) -> bool:
    """Whether some sentences have more weight together than those that were chosen, and have all of these that have some weight alone."""
    if sum(one.weight for one in others) <= sum(one.weight for one in chosen):
        return False
    return {one.text for one in chosen if one.weight >= OF_WEIGHT} <= {one.text for one in others}


def _without_least(sentences: Sequence[Sentence], tokens: int) -> tuple[Sentence, ...]:
    """The sentences without those that matter least for their length and take so many tokens together; one stays in any case."""
    dropped: set[int] = set()
    for at in sorted(range(len(sentences)), key=lambda at: rank(sentences[at].weight, sentences[at].text))[:-1]:
        if tokens <= 0:
            break
        dropped.add(at)
        tokens -= estimate_tokens(sentences[at].text)
    return tuple(sentence for at, sentence in enumerate(sentences) if at not in dropped)
