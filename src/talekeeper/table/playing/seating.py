"""A story at the table: who sits there, what the game's state is, what each one is asked, and how a round gets into the log.

The log is the truth. What a round changes in the game rides in it as marks of the turns that changed it, so a rewind of the story is a
rewind of the game, and there is nothing else to save. A round is written in one step at its end: one that fails, is cancelled or loses
a race leaves the story exactly as it was. Memories of places and of the world are made after that from what was written; if the program
dies before, they are made up for when the next round begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from talekeeper import rim
from talekeeper.context.recipe import Note
from talekeeper.errors import Conflict, InvalidInput, NameTaken, TalekeeperError
from talekeeper.keeper import Keeper
from talekeeper.memory.moments import AdventureMoment, adventure_moments
from talekeeper.memory.parts import facts, loose_ends, remember
from talekeeper.memory.scopes import MemoryService
from talekeeper.model import AUTHOR_KINDS, HEARD_KINDS, Context, Mark, Marked, MemoryKey, Seat, Turn
from talekeeper.ports import MAIN, ChatModel
from talekeeper.story.inside import read_once
from talekeeper.story.replay import Past
from talekeeper.story.story import Story
from talekeeper.table import packs
from talekeeper.table.brain import Ask, Brain, Known, Part, Ruling
from talekeeper.table.meaning.spelling import alike, content, words_of
from talekeeper.table.playing.flight import DM, GAME, KEPT_RULINGS, Course, Flight, Told, drafts_of
from talekeeper.table.playing.vetting import Vetting
from talekeeper.table.rules import conditions
from talekeeper.table.shown.scene import scene
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world.events import Beat, event_from_json
from talekeeper.table.world.gamestate import GameState, fold, state_from_json, state_to_json
from talekeeper.table.world.phrases import errand_things
from talekeeper.table.world.scenario import Scenario

SETUP, ROUND, STATE, REMEMBERED, BRANCH = "table:setup", "table:round", "table:state", "table:remembered", "table:branch"
KEPT = 256
Brains: TypeAlias = "Brain | Mapping[Part, Brain]"
"""Who answers: one for everyone, or one per role."""
LONGEST_QUERY = 240
"""The end of what was last said or done, in characters: what a prompt's memories are looked up by."""
_WORDS_KEPT = 6
"""How many of the newest speeches of one who talks to them an NPC thinks back to."""
_RECALLED = 24
"""Of so many turns that answer a question, one may be by whoever asks it."""
STATE_EVERY = 24
"""After so many rulings the whole state is noted, so that resuming need not fold the game from its beginning."""

_ASIDE = frozenset({"whisper", "thought", "mark", "pin", "unpin", "override"})
MOVED_ON = "the story has moved on since this round began: play it again from where it is now"


@dataclass(frozen=True, slots=True)
class Setup:
    """What is settled when a game begins."""

    pack: str
    party: tuple[str, ...]
    humans: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Budgets:
    """How many tokens of memory go into a prompt, per role."""

    dm: int = 4000
    pc: int = 2000


def seats_for(scenario: Scenario, party: Iterable[str], budgets: Budgets) -> list[Seat]:
    """The DM, the party, and everyone whom they may meet."""
    heroes = [scenario.heroes[id] for id in party]
    return [
        Seat(DM, role="dm", token_limit=budgets.dm),
        *(Seat(hero.id, name=hero.name, aliases=hero.aliases, token_limit=budgets.pc) for hero in heroes),
        *(Seat(npc.id, role="npc", name=npc.name, aliases=npc.aliases, token_limit=budgets.pc) for npc in scenario.npcs.values()),
    ]


class Table:
    """One branch of a story, with the game that is played in it. Get one from `begin` or `resume`."""

    def __init__(
        self, story: Story, setup: Setup, scenario: Scenario, brains: Brains, *, budgets: Budgets = Budgets(),
        summarizer: ChatModel | None = None,
    ) -> None:  # fmt: skip
        self.story = story
        self.setup = setup
        self.scenario = scenario
        self.budgets = budgets
        self.asked: dict[str, Ask] = {}
        """The last ask of each role and seat, by "role:seat", the newest last: what `/why` shows."""
        self._brains = brains
        self._summarizer = summarizer
        self.vetting = Vetting(scenario)
        self._start = conditions.begin(scenario, setup.party)
        self._known: tuple[str, GameState] | None = None
        self._course = Course()
        self._folded: tuple[list[Marked], GameState] = [], self._start
        self._caught_up = ""
        labels = _labels(scenario)
        self.memory = MemoryService(story, summarizer=summarizer, labels=labels)
        people = {**scenario.npcs, **scenario.heroes, **scenario.items}
        self._names = {DM: "DM", **errand_things(), **labels, **{id: one.name for id, one in people.items()}}

    def brain(self, role: Part) -> Brain:
        return self._brains[role] if isinstance(self._brains, Mapping) else self._brains

    def on(self, story: Story) -> Table:
        """The same table on another branch of its story."""
        return Table(story, self.setup, self.scenario, self._brains, budgets=self.budgets, summarizer=self._summarizer)

    # -- the state of the game -------------------------------------------------------------------------------------------

    async def state(self) -> GameState:
        """What the events of this branch add up to."""
        noted = await self.story.marks(None, STATE)
        version = self.story.version
        if self._known is None or self._known[0] != version:
            self._known = (version, await self._state_in(self.story, noted))
        return self._known[1]

    async def states(self, flight: Flight) -> Sequence[GameState]:
        """The states that the game has gone through in a round, from the one in which it began to the newest."""
        return self._course.states(flight, await self.state())

    async def state_at(self, book: Story | Past) -> GameState:
        """What the events up to some point of this story add up to."""
        return await self._state_in(book, await book.marks(None, STATE))

    async def _state_in(self, book: Story | Past, noted: Sequence[Marked]) -> GameState:
        since = noted[-1].data["seq"] if noted else 0
        marks = [mark for mark in await book.marks(None, GAME, limit=KEPT_RULINGS) if mark.seq > since]
        played = [*noted[-1:], *sorted(marks, key=lambda mark: mark.seq)]
        known, state = self._folded
        if not known or played[: len(known)] != known:
            known, state = [], self._start
        for mark in played[len(known) :]:
            state = state_from_json(mark.data["state"]) if mark.topic == STATE else fold(state, map(event_from_json, mark.data["events"]))
        self._folded = played, state
        return state

    async def rounds(self) -> list[Marked]:
        """The rounds that were played on this branch, oldest first, as far back as they are kept. `turn` is where each began."""
        return await self.story.marks(None, ROUND)

    async def round_now(self, book: Story | Past | None = None) -> int:
        """The number of the next round, from 1: now, or at some point of this story."""
        return await _next_round(book or self.story)

    async def is_told(self, book: Story | Past | None = None) -> bool:
        """Whether the epilogue was told in the last round: now, or at some point of this story."""
        newest = await (book or self.story).marks(None, ROUND, limit=1)
        return bool(newest and newest[-1].data.get("epilogue"))

    async def check_untold(self) -> None:
        """Raises `InvalidInput` where the ending has been told, and nothing since: no story ends twice."""
        if (await self.state()).ending or await self.is_told():
            raise InvalidInput("the ending has been told already: take it back (undo) if you want another one")

    # -- asking ------------------------------------------------------------------------------------------------------------

    async def ask(self, role: Part, seat: str, state: GameState, flight: Flight, told: Told) -> Ask:
        """One question, with all that this seat may know and nothing else."""
        who = told.viewer or seat
        context = await self.prompt(role, seat, state, told)
        ask = Ask(
            role=role, seat=seat, context=context, scene=scene(self.scenario, state, who, self.setup.seed),
            action=told.action, actor=told.actor, pacing=self.pacing(state), nudge=flight["nudge"] if role in ("dm", "narrator") else None,
            round=flight["round"], seed=self.setup.seed, state=None if role == "pc" else state, said=told.said, leader=self.leader(state),
            humans=self.setup.humans,
            rulings=told.rulings, names=self._names,
        )  # fmt: skip
        if role == "narrator":
            ask = replace(ask, knowing=await self._knowing(told.rulings, state))
        if role == "epilogue":
            ask = replace(ask, moments=await self._shared_moments(flight))
        self.asked.pop(name := f"{role}:{seat}", None)  # so that the newest comes last
        self.asked[name] = ask
        return ask

    async def prompt(self, role: Part, seat: str, state: GameState, told: Told) -> Context:
        """What this seat remembers, as it goes into its prompt."""
        who = told.viewer or seat
        said = [text for who, text in told.said if who != DM] or [text for _, text in told.said]
        query = said[-1] if said and role != "keeper" else told.action
        if role == "keeper" and isinstance(self.brain(role), Storyteller):
            query = ""  # the rules go by the game alone: nothing need be looked up for them
        return await self.remember(seat, place=state.where.get(who), present=self._others(state, who), query=query[-LONGEST_QUERY:] or None)

    async def _knowing(self, rulings: Sequence[Ruling], state: GameState) -> dict[str, Known]:
        """What those to whom somebody talks have heard of the party, and of the one who talks. What they were told in confidence is
        not in it, unless all who stand by were told as well."""
        talks = [(ruling, one) for ruling in rulings for one in ruling.events if isinstance(one, Beat) and one.what in ("talk", "recall")]
        since = max(0, self.story.head - KEPT)
        known: dict[str, Known] = {}
        for ruling, talk in talks:
            npc, hearers = talk.about[0], {talk.who} if ruling.is_secret else set(state.here(state.where[talk.who]))
            said = await self.story.turns(seat=npc, speaker=talk.who, after=since, limit=_WORDS_KEPT, newest=True)
            if talk.what == "recall":
                found = await self.story.recall(npc, ruling.action, limit=_RECALLED)
                both = {turn.id: turn for turn in (*said, *(hit.turn for hit in found)) if turn.speaker == talk.who}
                said = _about(ruling.action, sorted(both.values(), key=lambda turn: turn.seq))
            words = tuple(turn.text for turn in said if hearers <= set(turn.audience))
            known[npc] = Known(tuple(await adventure_moments(self.story, npc)), words)
        return known

    async def _shared_moments(self, flight: Flight) -> tuple[AdventureMoment, ...]:
        """What all of the party know of, this round included: an ending is told to all of them."""
        found = [await adventure_moments(self.story, seat) for seat in self.setup.party]
        shared = set.intersection(*({moment.id for moment in one} for one in found))
        new = [one["moment"] for one in flight["decisions"] if one["moment"] is not None and not one["private"]]
        now = [AdventureMoment(self.story.head + number, *moment) for number, moment in enumerate(new, 1)]
        return (*(moment for moment in found[0] if moment.id in shared), *now)

    async def remember(self, seat: str, *, place: str | None, present: Sequence[str], query: str | None = None) -> Context:
        """The seat's context, with its facts and loose ends, and its memories of this place and of those who are here."""
        return await read_once(
            self.story, ("context", self.budgets, seat, place, tuple(present), query), lambda: self._remembered(seat, place, present, query)
        )

    async def _remembered(self, seat: str, place: str | None, present: Sequence[str], query: str | None) -> Context:
        budget = self.budgets.dm if seat == DM else self.budgets.pc
        notes: Mapping[str, Sequence[Note]] = {}
        if place is not None:
            notes = await read_once(
                self.story, ("notes", seat, place, *present), lambda: self.memory.notes(seat, location_id=place, npc_ids=present)
            )
        return await remember(self.story, seat, budget=budget, query=query, extras=notes, contributors=(facts, loose_ends))

    def _others(self, state: GameState, who: str) -> list[str]:
        place = state.where.get(who)
        return [one for one in state.here(place) if one in self.scenario.npcs] if place else []

    def leader(self, state: GameState) -> str:
        """Whom the party follows: a person, if one can act."""
        people = [one for one in state.able if one in self.setup.humans]
        return (people or list(state.able) or [""])[0]

    def pacing(self, state: GameState) -> str:
        """Where in the arc we are, in a sentence."""
        acts = self.scenario.acts
        number = self.scenario.act_number(state.act)
        needed = [one.id for one in self.scenario.objectives.values() if not one.optional]
        done = sum(one in state.objectives for one in needed)
        if state.ending:
            return "The story has ended: let it come to rest."
        if number == 1:
            where = "the beginning: let them find their feet"
        elif number < len(acts):
            where = "the middle: raise what is at stake"
        else:
            where = "the end is near: let threads come together"
        return f"Act {number} of {len(acts)}, {done} of {len(needed)} goals reached; {where}."

    # -- one round into the log ----------------------------------------------------------------------------------------------

    async def commit(self, flight: Flight) -> list[Turn]:
        """Writes the round in one step. Raises `Conflict` where the story has moved since the round began."""
        state = await self.state()
        if not await self.takes(flight["version"]):
            raise Conflict(MOVED_ON)
        drafts = drafts_of(flight, state)
        if not drafts:
            return []
        first = drafts[0]
        said = {"round": flight["round"], **({"epilogue": True} if flight["epilogue"] else {})}
        mark = Mark(ROUND, said, rank=flight["round"], keep=KEPT, heard_by=())
        drafts[0] = first._replace(marks=(mark, *first.marks))
        turns = await self.story.append_many(drafts, expected_version=self.story.version)
        await self.catch_up()
        return turns

    async def takes(self, version: str) -> bool:
        """Whether a round that began at this version can still be written: what happens in none of its scenes does not disturb it."""
        branch, _, head = version.partition(".")
        now = self.story.version
        if now == version or now.partition(".")[0] != branch:
            return now == version
        since = await self.story.turns(after=int(head), kinds=tuple(HEARD_KINDS | AUTHOR_KINDS))
        return all(turn.kind in _ASIDE for turn in since)

    async def catch_up(self) -> None:
        """Makes the memories that rounds have given reason for, and notes the state now and then."""
        noted, saved = await self.story.marks(None, REMEMBERED), await self.story.marks(None, STATE)
        if self._caught_up == self.story.version:
            return
        since, state_at = (marks[-1].data["seq"] if marks else 0 for marks in (noted, saved))
        rulings = sorted(await self.story.marks(None, GAME, limit=KEPT_RULINGS), key=lambda mark: mark.seq)
        played = [mark for mark in rulings if mark.seq > since]
        for mark in played:
            for trigger in mark.data["triggers"]:
                await self._remember(trigger, mark)
        if played:
            await self.story.mark(REMEMBERED, {"seq": played[-1].seq}, heard_by=(), keep=1)
        if played and sum(mark.seq > state_at for mark in rulings) >= STATE_EVERY:
            state = state_to_json(await self.state())
            await self.story.mark(STATE, {"seq": played[-1].seq, "state": state}, heard_by=(), keep=1)
        self._caught_up = self.story.version

    async def _remember(self, trigger: Mapping[str, Any], mark: Marked) -> None:
        related = trigger["related"]
        if trigger["kind"] == "location_exit":
            await self.memory.on_location_exit(related["location_id"], present=trigger["present"])
        else:
            await self.memory.on_world_event(trigger["kind"], related=related, of=mark.sources[-1])

    # -- what people do beside playing ---------------------------------------------------------------------------------------

    async def undo(self, rounds: int = 1, *, expected_version: str | None = None) -> int:
        """Takes the last rounds back: the story, the game and every memory. What was played stays as a branch. Returns the round.

        `expected_version`: raise `Conflict` where the story is not the one that was looked at."""
        rim.version(expected_version)
        played = await self.rounds()
        if expected_version not in (None, self.story.version):  # before they are counted: there may be fewer by now
            raise Conflict(f"the story is at version {self.story.version}, not {expected_version}: read again, then retry")
        if not 1 <= rounds <= len(played):
            most = f"{len(played)} round{'' if len(played) == 1 else 's'} can be taken back, not {rounds}"
            raise InvalidInput(most if played else "no round has been played yet, so there is none to take back")
        await self.story.rewind(played[-rounds].turn - 1, expected_version=expected_version)
        return int(played[-rounds].data["round"])

    async def seat_people(self, humans: Iterable[str]) -> None:
        """Says who of the party is played by a person from now on. It stands in the log: a rewind takes it back."""
        setup = replace(self.setup, humans=tuple(one for one in self.setup.party if one in set(humans)))
        strangers = set(humans) - set(setup.party)
        if strangers:
            raise _not_of_the_party(sorted(strangers)[0], setup)
        if setup != self.setup:
            await self.story.mark(SETUP, _written(setup), heard_by=(), keep=1)
            self.setup = setup

    async def look_who_plays(self) -> None:
        """Takes over from the log who is played by a person: a rewind or another process may have changed it."""
        self.setup = await self.setup_at(self.story)

    async def setup_at(self, book: Story | Past) -> Setup:
        """Who was played by a person at some point of this story."""
        noted = await book.marks(None, SETUP)
        return _setup(noted[-1].data) if noted else self.setup

    async def note_branch(self) -> None:
        """Notes that this branch is the one that is played. It stands on the main one, where `branch_played` looks for it."""
        if await branch_played(self.story) != self.story.branch:
            await (await self.story.switch(MAIN)).mark(BRANCH, {"branch": self.story.branch}, heard_by=(), keep=1)

    async def whisper(self, speaker: str, to: Sequence[str], text: str, *, id: str | None = None) -> Turn:
        """Words for some ears only, at once and outside of any round. `id`: told once, however often. Raises `InvalidInput` where one
        of those who are to hear it is not where the speaker is; a DM is everywhere."""
        state = await self.state()
        for one in to if speaker in state.where else ():
            if one in state.where and one not in state.here(state.where[speaker]):
                raise InvalidInput(f"{self.scenario.name(one)} is not here, so nobody would hear it: whisper to somebody who is")
        return await self.story.append(speaker, text, kind="whisper", heard_by=tuple(to), id=id)


async def begin(
    keeper: Keeper, key: MemoryKey, setup: Setup, brains: Callable[[Scenario], Brains], *, budgets: Budgets = Budgets(),
    summarizer: ChatModel | None = None,
) -> Table:  # fmt: skip
    """A new game under the key. Raises `NameTaken` where there is a story already."""
    scenario = scenario_of(setup)
    players = brains(scenario)
    new = await keeper.store.load(key) is None
    try:
        story = await keeper.story(key, seats=seats_for(scenario, setup.party, budgets))
        if await story.turns(limit=1):
            raise NameTaken(f"there is a story under {key.session_id!r} already: resume it, or choose another name")
        await story.mark(SETUP, _written(setup), heard_by=(), keep=1)  # before the first turn, so that going back to that one keeps it
        await story.append("", "\n".join(scenario.premise), kind="note")
    except asyncio.CancelledError:  # a story without its game could be neither resumed nor begun
        if new:
            await keeper.delete(key)
        raise
    return Table(story, setup, scenario, players, budgets=budgets, summarizer=summarizer)


def scenario_of(setup: Setup) -> Scenario:
    """The adventure of a game that can begin like that; raises what is wrong with it where it cannot."""
    scenario = packs.load(setup.pack)
    strangers = [human for human in setup.humans if human not in setup.party]
    if strangers:
        raise _not_of_the_party(strangers[0], setup)
    conditions.begin(scenario, setup.party)
    return scenario


async def branch_played(story: Story) -> str:
    """The branch that was played last; the main one, where there has been no other."""
    noted = await (await story.switch(MAIN)).marks(None, BRANCH, limit=1)
    there = {branch.name for branch in await story.branches()}
    return noted[0].data["branch"] if noted and noted[0].data["branch"] in there else MAIN


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A game from far away: which adventure it is, and its next round on the branch that was played last."""

    adventure: str
    round: int


async def glimpse(story: Story) -> Glimpse | None:
    """What one sees of the game of a story without sitting down to it; None where it has none."""
    noted = await story.marks(None, SETUP, limit=1)
    if not noted:
        return None
    played = await story.switch(await branch_played(story))
    try:
        title = packs.load(noted[-1].data["pack"]).title
    except TalekeeperError:  # an adventure of one's own that has been moved or changed: the story is still there
        title = str(noted[-1].data["pack"])
    return Glimpse(title, await _next_round(played))


async def _next_round(book: Story | Past) -> int:
    newest = await book.marks(None, ROUND, limit=1)
    return int(newest[-1].data["round"]) + 1 if newest else 1


async def resume(
    keeper: Keeper, key: MemoryKey, brains: Callable[[Scenario], Brains], *, branch: str = MAIN, budgets: Budgets = Budgets(),
    summarizer: ChatModel | None = None,
) -> Table:  # fmt: skip
    """The game under the key, where it was left."""
    story = await keeper.story(key, branch=branch)
    noted = await story.marks(None, SETUP)
    if not noted:
        raise InvalidInput(f"the story {key.session_id!r} has turns, but was not begun at the table: begin a game under another name")
    setup = _setup(noted[-1].data)
    scenario = packs.load(setup.pack)
    table = Table(story, setup, scenario, brains(scenario), budgets=budgets, summarizer=summarizer)
    await table.catch_up()
    return table


def _about(question: str, turns: Sequence[Turn]) -> list[Turn]:
    """Those of the turns that have a word of what is asked about; all of them, where it is about nothing in particular."""
    _, about, subject = question.casefold().rpartition(" about ")
    wanted = content(subject) if about else []
    return [turn for turn in turns if not wanted or any(alike(word, one) for word in wanted for one in words_of(turn.text))]


def _labels(scenario: Scenario) -> dict[str, str]:
    """What memories are about, by name: nobody remembers ids."""
    titles = {id: quest.title for id, quest in scenario.quests.items()} | {id: one.title for id, one in scenario.objectives.items()}
    titles |= {act.id: act.title for act in scenario.acts}
    names = {id: place.name for id, place in scenario.places.items()} | {id: one.name for id, one in scenario.encounters.items()}
    return {id: f"“{title}”" for id, title in titles.items()} | names


def _written(setup: Setup) -> dict[str, Any]:
    return {"pack": setup.pack, "party": list(setup.party), "humans": list(setup.humans), "seed": setup.seed}


def _setup(data: Mapping[str, Any]) -> Setup:
    return Setup(data["pack"], tuple(data["party"]), tuple(data["humans"]), data["seed"])


def _not_of_the_party(who: str, setup: Setup) -> InvalidInput:
    return InvalidInput(f"{who!r} is not of the party ({', '.join(setup.party)}), so nobody can play it")
