"""A brain that asks language models, one per role if need be, and has someone to fall back on.

Speeches stream. Before the first word is heard a failing model is asked again, a bounded number of times, and then the fallback speaks
instead. After it, a failure is raised (`ModelFailed`): what was heard is no story, and the caller throws it away. A ruling that cannot be
read gets one repair, told what was wrong with it; then the rules decide, which is the fallback's ruling. Every failure is told to `notice`
with its role and reason and what was done about it. What models cost is counted per role.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, get_args

from talekeeper.errors import InvalidInput, ModelFailed, quoted
from talekeeper.memory.moments import KEEPER_SCHEMA, KeeperResponse
from talekeeper.ports import Message, Spending
from talekeeper.summarize import refusal
from talekeeper.table.brain import Ask, Brain, Part
from talekeeper.table.cast import prompts
from talekeeper.table.cast.models import Model, Modelled, Patience, Request, find, listen
from talekeeper.table.cast.speech import Speech, Unfit
from talekeeper.table.rules import dice
from talekeeper.table.world.commands import FOR_MODELS, command_from_json, commands_schema

ROLES: tuple[str, ...] = get_args(Part)
LENGTHS: Mapping[str, int] = {"dm": 400, "pc": 160, "keeper": 400, "narrator": 400, "epilogue": 800}
"""The most tokens that each role's answer may have."""
BUILT_IN = "builtin"
"""Named in the place of a model: the fallback speaks."""
_CHARACTERS_PER_TOKEN = 8
_log = logging.getLogger("talekeeper")


@dataclass(frozen=True, slots=True)
class Mishap:
    """A model that failed: whose voice it was to be, why, and what was done: it was asked again, the fallback spoke, or it was raised."""

    role: str
    seat: str
    round: int
    reason: str
    then: Literal["again", "fallback", "raised"]


def _unseen(mishap: Mishap) -> None:
    """Nobody is watching."""


class ModelBrain:
    """A `Brain` made of language models.

    `models`: a model's name, a model or an async callable for each role, and under "default" for the others; "builtin", or no model at
    all, leaves a role to the fallback. Raises `ModelUnavailable` at once where something is missing."""

    def __init__(
        self, models: Mapping[str, Modelled], fallback: Brain | None = None, *, lengths: Mapping[str, int] | None = None,
        patience: Patience | None = None, notice: Callable[[Mishap], None] = _unseen,
    ) -> None:  # fmt: skip
        unknown = [role for role in (*models, *(lengths or ())) if role not in (*ROLES, "default")]
        if unknown:
            raise InvalidInput(f"no role {unknown[0]!r}: there are {', '.join(ROLES)} and default")
        self.fallback = fallback
        self.models: dict[str, Model] = _found(models)
        self.lengths = {**LENGTHS, **({} if lengths is None else _for_all(lengths))}
        self.patience = patience or Patience()
        self.notice = notice
        self.spent: dict[str, Spending] = {}
        """What each role has cost so far."""
        if fallback is None and len(self.models) < len(ROLES):
            missing = next(role for role in ROLES if role not in self.models)
            raise InvalidInput(f"nobody speaks for the {missing}: name a model for it, or one under 'default', or give a fallback")

    # -- speeches ------------------------------------------------------------------------------------------------------

    async def speak(self, ask: Ask) -> AsyncGenerator[str, None]:
        """The answer in pieces, whole words at a time."""
        model = self.models.get(ask.role)
        failed = None
        for attempt in range(self.patience.attempts if model is not None else 0):
            heard = False
            try:
                assert model is not None
                async with aclosing(self._speech(model, ask, attempt)) as pieces:
                    async for piece in pieces:
                        heard = True
                        yield piece
                return
            except ModelFailed as exc:
                failed = ModelFailed(exc.reason, role=ask.role, lasting=exc.lasting, cut=exc.cut)
                failed.__cause__ = exc
                if not await self._try_again(ask, failed, attempt, heard):
                    break
        spoken = self._stand_in(failed).speak(ask)
        try:
            async for piece in spoken:
                yield piece
        finally:
            if isinstance(spoken, AsyncGenerator):
                await spoken.aclose()

    async def _speech(self, model: Model, ask: Ask, attempt: int) -> AsyncGenerator[str, None]:
        length = self.lengths[ask.role]
        asked = prompts.messages(ask, length)
        speech = Speech(
            prompts.told(asked), instructions=asked[0]["content"], name=ask.scene.name if ask.role == "pc" else "",
            in_character=ask.role == "pc", most=length * _CHARACTERS_PER_TOKEN,
        )  # fmt: skip
        request = Request(asked, max_tokens=length, seed=_seed(ask, attempt), spend=self._account(ask.role))
        cut = False
        try:
            try:
                async with aclosing(listen(model, request, self.patience)) as pieces:
                    async for piece in pieces:
                        if said := speech.feed(piece):
                            yield said
                        if speech.over:
                            break
            except ModelFailed as exc:
                if not exc.cut:
                    raise
                cut = True
            if rest := speech.finish(cut=cut):
                yield rest
        except Unfit as exc:
            raise ModelFailed(f"{model.name}: {exc}") from exc

    # -- rulings -------------------------------------------------------------------------------------------------------

    async def rule(self, ask: Ask) -> KeeperResponse:
        """The keeper's ruling; the fallback's where the model's cannot be had."""
        model = self.models.get(ask.role)
        if model is None:
            return await self._stand_in(None).rule(ask)
        asked = prompts.messages(ask, self.lengths[ask.role])
        try:
            text = await self._answer(model, ask, asked)
            try:
                return read_ruling(text, prompts.told(asked))
            except InvalidInput as exc:
                self._mishap(ask, f"{model.name}: {exc}", "again")
                again = [*asked, {"role": "assistant", "content": text or "(nothing)"}, prompts.repair(str(exc))]
                return read_ruling(await self._answer(model, ask, again), prompts.told(asked))
        except (ModelFailed, InvalidInput) as exc:
            failed = ModelFailed(exc.reason if isinstance(exc, ModelFailed) else f"{model.name}: {exc}", role=ask.role)
            failed.__cause__ = exc
            self._mishap(ask, failed.reason, "raised" if self.fallback is None else "fallback")
        return await self._stand_in(failed).rule(ask)

    async def _answer(self, model: Model, ask: Ask, messages: Sequence[Message]) -> str:
        """What the model says, whole or cut off; asked again where it says nothing."""
        request = Request(messages, ruling_schema(), self.lengths[ask.role], _seed(ask, 0), sober=True, spend=self._account(ask.role))
        for attempt in range(self.patience.attempts):
            text = ""
            try:
                async with aclosing(listen(model, request, self.patience)) as pieces:
                    async for piece in pieces:
                        text += piece
            except ModelFailed as exc:
                if exc.cut:
                    break
                if exc.lasting or attempt + 1 == self.patience.attempts:
                    raise
                self._mishap(ask, exc.reason, "again")
                await asyncio.sleep(self.patience.pause * 2**attempt)
                continue
            break
        return text

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    async def _try_again(self, ask: Ask, failed: ModelFailed, attempt: int, heard: bool) -> bool:
        """Whether the model is asked once more. Raises where words of it were heard already, or nobody can speak instead."""
        if heard:
            self._mishap(ask, failed.reason, "raised")
            raise failed
        if not failed.lasting and attempt + 1 < self.patience.attempts:
            self._mishap(ask, failed.reason, "again")
            await asyncio.sleep(self.patience.pause * 2**attempt)
            return True
        self._mishap(ask, failed.reason, "raised" if self.fallback is None else "fallback")
        return False

    def _stand_in(self, failed: ModelFailed | None) -> Brain:
        if self.fallback is not None:
            return self.fallback
        raise failed or InvalidInput("nobody speaks for that role")

    def _mishap(self, ask: Ask, reason: str, then: Literal["again", "fallback", "raised"]) -> None:
        mishap = Mishap(ask.role, ask.seat, ask.round, reason, then)
        self._account(ask.role)(Spending(failures=1))
        _log.warning("model_failed", extra={"role": mishap.role, "seat": mishap.seat, "reason": reason, "then": then})
        self.notice(mishap)

    def _account(self, role: str) -> Callable[[Spending], None]:
        def spend(more: Spending) -> None:
            self.spent[role] = self.spent.get(role, Spending()) + more

        return spend


def _seed(ask: Ask, attempt: int) -> int:
    """The same for the same ask; another for each seat, round and attempt."""
    return dice.number(1 << 31, ask.seed, ask.round, ask.seat, f"{ask.role}/{attempt}")


def _for_all(lengths: Mapping[str, int]) -> dict[str, int]:
    return {role: lengths.get(role, lengths.get("default", LENGTHS[role])) for role in ROLES}


def _found(models: Mapping[str, Modelled]) -> dict[str, Model]:
    """A model for each role that has one; a model that is named twice is found once."""
    found: dict[object, Model] = {}
    for_role: dict[str, Model] = {}
    for role in ROLES:
        model = models.get(role, models.get("default", BUILT_IN))
        if model != BUILT_IN:
            key = model if isinstance(model, str) else id(model)
            for_role[role] = found[key] = found.get(key) or find(model)
    return for_role


# -- reading a ruling --------------------------------------------------------------------------------------------------


def ruling_schema() -> dict[str, Any]:
    """What a keeper's model is held to: a `KeeperResponse` whose commands are those that models may use."""
    commands = {**KEEPER_SCHEMA["properties"]["commands"], "items": commands_schema()}
    return {**KEEPER_SCHEMA, "properties": {**KEEPER_SCHEMA["properties"], "commands": commands}, "additionalProperties": False}


def read_ruling(text: str, told: str = "") -> KeeperResponse:
    """The ruling in a model's answer. Raises `InvalidInput` with what is wrong, in words for the one who has to repair it."""
    raw = _object_in(text)
    missing = [name for name in KEEPER_SCHEMA["required"] if name not in raw]
    if missing:
        raise InvalidInput(f"{', '.join(missing)} missing")
    for name in ("resolution", "moment_summary"):
        _check_length(name, raw[name])
    resolution = raw["resolution"]
    if not isinstance(resolution, str) or not resolution.strip() or refusal.declines(resolution, told):
        raise InvalidInput(f"resolution must say what comes of the action, not {quoted(resolution)}")
    commands = raw["commands"]
    if not isinstance(commands, list) or len(commands) > KEEPER_SCHEMA["properties"]["commands"]["maxItems"]:
        raise InvalidInput("commands must be a list of at most eight objects")
    for command in commands:
        if command_from_json(command).type not in FOR_MODELS:
            raise InvalidInput(f"no command of the type {command['type']!r}")
    return KeeperResponse(
        " ".join(resolution.split()), raw["moment_type"], raw["moment_summary"] or None, raw["moment_significance"], tuple(commands)
    )


def _check_length(name: str, value: object) -> None:
    form = KEEPER_SCHEMA["properties"][name]
    most = form.get("maxLength") or form["anyOf"][0]["maxLength"]
    if isinstance(value, str) and len(value) > most:
        raise InvalidInput(f"{name} has {len(value)} characters, at most {most} are taken")


def _object_in(text: str) -> dict[str, Any]:
    """The JSON object in the text; what stands around it (a fence, a remark, thinking) is ignored."""
    start, end = text.find("{"), text.rfind("}")
    try:
        raw = json.loads(text[start : end + 1] if 0 <= start < end else text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"it is no JSON: {exc}") from exc
    if not isinstance(raw, dict):
        raise InvalidInput(f"it must be a JSON object, not {type(raw).__name__}")
    return raw
