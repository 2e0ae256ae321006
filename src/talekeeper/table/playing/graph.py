"""The turn graph: remember, DM, player characters in order with the keeper's ruling on each, narrator, commit, epilogue at the end.

Wiring only. What each step asks and what it may know is in `seating`, what a round becomes is in `flight`. The graph's state is the round
in flight and nothing else; a person's turn is an interrupt, and whatever is spoken is streamed as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from talekeeper.model import to_json
from talekeeper.table.brain import Ask, Part
from talekeeper.table.meaning.secrecy import OPEN
from talekeeper.table.meaning.understand import Listener
from talekeeper.table.playing.flight import (
    DM,
    Decision,
    Flight,
    Told,
    Words,
    decide,
    hearing,
    overseen,
    places_of,
    rulings_of,
    said_before,
    scene_for,
)  # fmt: skip
from talekeeper.table.playing.seating import Table
from talekeeper.table.rules.ledger import Contradiction
from talekeeper.table.rules.settling import settle
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world.gamestate import GameState

Step = dict[str, Any]


@cache
def turn_graph() -> CompiledStateGraph[Flight, Table, Flight, Flight]:
    """One round, compiled once for all tables: the one that is played comes along as the run's context."""
    steps = _Steps()
    graph = StateGraph(Flight, context_schema=Table)
    graph.add_node("context_manager", steps.context_manager)
    graph.add_node("dm", steps.dm)
    graph.add_node("pc", steps.pc)
    graph.add_node("keeper", steps.keeper)
    graph.add_node("narrator", steps.narrator)
    graph.add_node("epilogue", steps.epilogue)
    graph.add_node("commit", steps.commit)
    graph.add_edge(START, "context_manager")
    graph.add_edge("context_manager", "dm")
    graph.add_conditional_edges("dm", steps.next_player, ["pc", "narrator"])
    graph.add_edge("pc", "keeper")
    graph.add_conditional_edges("keeper", steps.next_player, ["pc", "narrator"])
    graph.add_conditional_edges("narrator", steps.is_over, ["epilogue", "commit"])
    graph.add_edge("epilogue", "commit")
    graph.add_edge("commit", END)
    return graph.compile()


class _Steps:
    @property
    def _table(self) -> Table:
        """The one at which this round is played."""
        table: Table = get_runtime(Table).context
        return table

    async def context_manager(self, flight: Flight) -> Step:
        """What earlier rounds left to be remembered, and who is to act."""
        await self._table.catch_up()
        state = await self._table.state()
        return {"todo": list(state.able), "version": self._table.story.version}

    async def dm(self, flight: Flight) -> Step:
        table = self._table
        state = await table.state()
        scenes: list[Words] = []
        refusals: list[str] = []
        for place, party in places_of(state):
            ask = await table.ask("dm", DM, state, flight, Told(viewer=party[0]))
            hearers = list(state.here(place))
            text = await self._speak("dm", ask, hearers, [state], refusals)
            scenes.append(Words(speaker=DM, text=text, place=place, hearers=hearers, private=False))
        return {"scenes": scenes, "refusals": refusals}

    async def next_player(self, flight: Flight) -> Literal["pc", "narrator"]:  # async, or it would be run in a thread
        return "pc" if flight["todo"] else "narrator"

    async def pc(self, flight: Flight) -> Step:
        """One player character acts: a person is waited for, an AI is asked."""
        table = self._table
        seat, *rest = flight["todo"]
        state = (await table.states(flight))[-1]
        if seat not in state.able:
            return {"todo": rest}
        ask = await table.ask("pc", seat, state, flight, Told(action=scene_for(flight, seat), said=said_before(flight, seat)))
        if seat in table.setup.humans:
            text = str(interrupt({"seat": seat, "round": flight["round"], "scene": to_json(ask.scene)})).strip()
        else:
            text = "".join([piece async for piece in table.vetting.speech(table.brain("pc"), ask, (), lambda found: None)]).strip()
        said = Words(speaker=seat, text=text, place=state.where.get(seat), hearers=hearing(state, seat), private=False)
        return {"todo": rest, "said": [*flight["said"], said] if text else flight["said"]}

    async def keeper(self, flight: Flight) -> Step:
        """Rules on what was done last. What turns out to be secret is kept from those who act later."""
        if len(flight["said"]) == len(flight["decisions"]):
            return {}  # the turn was let pass
        table = self._table
        state = (await table.states(flight))[-1]
        *others, words = flight["said"]
        seat, action = words["speaker"], words["text"]
        told = Told(viewer=seat, action=action, actor=seat, said=said_before(flight, DM), rulings=rulings_of(flight["decisions"]))
        ask = await table.ask("keeper", DM, state, flight, told)
        refusals = list(flight.get("refusals", ()))
        response = await table.vetting.ruling(table.brain("keeper"), ask, state, _notice("keeper", hearing(state, seat), refusals))
        meant = Listener(table.scenario, state, seat).confidence(action)
        if meant.doubt and seat not in table.setup.humans:
            meant = OPEN  # nobody can be asked: it is as the keeper took it
        decision = decide(state, seat, action, response, settle(state, table.scenario, response.commands, seat), meant)
        if seat not in table.setup.humans:  # only now is it known whether it was meant for everyone
            _tell("speech", seat, action, decision["hearers"], "pc")
            _tell("end", seat, "", decision["hearers"], "pc")
        _tell("ruling", seat, decision["resolution"], decision["hearers"], private=decision["private"])
        heard = Words(**{**words, "hearers": decision["hearers"], "private": decision["private"]})
        return {"said": [*others, heard], "decisions": [*flight["decisions"], decision], "refusals": refusals}

    async def narrator(self, flight: Flight) -> Step:
        """Tells what came of it: to all who stood by, and what was done in secret to those who know."""
        table = self._table
        states = await table.states(flight)
        after = states[-1]
        tales: list[Words] = []
        refusals = list(flight.get("refusals", ()))
        for told in _audiences(flight):
            actor = told[0]["actor"]
            moved = after.where.get(actor) != told[0]["place"]
            hearers = [one for one in told[0]["hearers"] if one in after.party] if moved else told[0]["hearers"]
            open_tales = [tale["text"] for tale in tales if not tale["private"] and actor in tale["hearers"] and tale["text"]]
            before = (*_heard_before(flight, actor), *((DM, text) for text in open_tales))
            ask = await table.ask("narrator", DM, after, flight, Told(viewer=actor, rulings=rulings_of(told), said=before))
            text = await self._speak("narrator", ask, hearers, states, refusals)
            tales.append(Words(speaker=DM, text=text, place=after.where.get(actor), hearers=hearers, private=told[0]["private"]))
            tales += await self._seen(told[0], ask)
        return {"tales": [tale for tale in tales if tale["text"]], "refusals": refusals}

    async def _seen(self, decision: Decision, ask: Ask) -> list[Words]:
        """What those are told who only saw a whisper: by the rules, and never by a model, which knows what was said."""
        seen = overseen(decision)
        if seen is None:
            return []
        rules, hearers = Storyteller(self._table.scenario), decision.get("unaware", [])
        text = "".join([piece async for piece in rules.speak(replace(ask, rulings=(seen,)))])
        _tell("speech", DM, text, hearers, "narrator")
        _tell("end", DM, "", hearers, "narrator")
        return [Words(speaker=DM, text=text, place=decision["place"], hearers=hearers, private=False)]

    async def is_over(self, flight: Flight) -> Literal["epilogue", "commit"]:
        states = await self._table.states(flight)
        return "epilogue" if states[-1].ending and not states[0].ending else "commit"

    async def epilogue(self, flight: Flight) -> Step:
        table = self._table
        state = (await table.states(flight))[-1]
        ask = await table.ask("epilogue", DM, state, flight, Told(viewer=state.party[0], rulings=rulings_of(flight["decisions"])))
        return {"epilogue": await self._speak("epilogue", ask, list(state.party))}

    async def commit(self, flight: Flight) -> Step:
        await self._table.commit(flight)
        return {}

    async def _speak(
        self, role: Part, ask: Ask, hearers: list[str], states: Sequence[GameState] = (), refusals: list[str] | None = None
    ) -> str:
        """What is said, told on as it comes. `states`: what it must not contradict; what does goes to `refusals`."""
        write = _writer()
        pieces = []
        notice = _notice(role, hearers, [] if refusals is None else refusals)
        async for piece in self._table.vetting.speech(self._table.brain(role), ask, states, notice):
            pieces.append(piece)
            write({"kind": "speech", "role": role, "seat": ask.seat, "text": piece, "hearers": hearers})
        write({"kind": "end", "role": role, "seat": ask.seat, "text": "", "hearers": hearers})
        return "".join(pieces).strip()


def _heard_before(flight: Flight, seat: str) -> tuple[tuple[str, str], ...]:
    """What a narrator goes on from: the scene that the DM set, and what was said in it, as far as the seat heard it."""
    return tuple(one for one in ((DM, scene_for(flight, seat)), *said_before(flight, seat)) if one[1])


def _audiences(flight: Flight) -> list[list[Any]]:
    """The decisions that are told together: by place in the open, and each secret by itself."""
    groups: dict[Any, list[Any]] = {}
    for number, decision in enumerate(flight["decisions"]):
        groups.setdefault(number if decision["private"] else decision["place"], []).append(decision)
    return list(groups.values())


def _writer() -> Callable[[Any], None]:
    return get_stream_writer()  # type: ignore[no-any-return]


def _notice(role: Part, hearers: list[str], refusals: list[str]) -> Callable[[Contradiction], None]:
    """Says what cannot be to those who hear the rest, unless it is about something that not all of them may know of."""
    write = _writer()

    def notice(found: Contradiction) -> None:
        refusals.append(found.text)
        text = "" if found.hidden else found.text
        write({"kind": "refused", "role": role, "seat": DM, "text": text, "hearers": hearers})

    return notice


def _tell(kind: str, seat: str, text: str, hearers: list[str], role: str = "keeper", *, private: bool = False) -> None:
    _writer()({"kind": kind, "role": role, "seat": seat, "text": text, "hearers": hearers, "private": private})
