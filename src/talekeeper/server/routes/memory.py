"""What seats remember: contexts, recall, the folds behind them, and what is marked."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from talekeeper.errors import UnknownFold
from talekeeper.server import limits, schemas
from talekeeper.server.door import Authored, BudgetQuery, LookingAs, LookingAt, MemoryPath, Route, SeatQuery
from talekeeper.server.ids import PREFIX
from talekeeper.server.problems import invalid, unknown

router = APIRouter(prefix=PREFIX, route_class=Route, tags=["memory"])
Query_ = Annotated[str, Query(min_length=1, max_length=limits.QUERY)]


@router.get("/stories/{story}/context", summary="What a seat remembers, as it goes into its prompt")
async def context(
    view: LookingAs,
    budget: BudgetQuery = None,
    query: Annotated[str | None, Query(min_length=1, max_length=limits.QUERY, description="Brings back turns that answer it.")] = None,
) -> schemas.Context:
    """Blocks of items, each with its tokens and sources, never above the budget; and what was left out, and why."""
    assert view.seat is not None
    return schemas.Context.model_validate(await view.book.context(view.seat, budget=budget, query=query))


@router.get("/stories/{story}/recall", summary="Find the turns that answer a question")
async def recall(view: LookingAs, query: Query_, limit: Annotated[int, Query(ge=1, le=limits.RECALLED)] = 5) -> schemas.Recalled:
    """Among what the seat heard, the best first."""
    assert view.seat is not None
    hits = await view.book.recall(view.seat, query, limit=limit)
    turns = await view.shown([hit.turn for hit in hits])
    found = [schemas.Recollection(turn=turn, score=hit.score) for turn, hit in zip(turns, hits, strict=True)]
    return schemas.Recalled(found=found)


@router.get("/stories/{story}/brief", summary="What a newcomer may be told")
async def brief(visit: Authored, seat: SeatQuery = None, budget: BudgetQuery = None) -> schemas.Context:
    """What every player character heard and nothing else. It may be more than the seat heard, so it is the dm's to hand out."""
    if seat is None:
        raise invalid("Say for whom with ?seat=.")
    visit.view(seat)
    return schemas.Context.model_validate(await visit.story.brief(seat, budget=budget))


@router.get("/stories/{story}/memories", summary="List the memories that a seat's context stands on")
async def list_memories(
    view: LookingAs, budget: BudgetQuery = None, depth: Annotated[int, Query(ge=0, le=2, description="How many levels below.")] = 0
) -> schemas.Memories:
    """The folds at that budget, oldest first. Each names the smaller folds or the turns that it stands for."""
    assert view.seat is not None
    folds = await view.book.folds(view.seat, budget=budget)
    return schemas.Memories(memories=[await view.remembered(fold, depth) for fold in folds])


@router.get("/stories/{story}/memories/{memory}", summary="One memory")
async def get_memory(
    view: LookingAt, memory: MemoryPath, depth: Annotated[int, Query(ge=0, le=3, description="How many levels below.")] = 0
) -> schemas.Memory:
    return await view.memory(memory, depth)


@router.get("/stories/{story}/memories/{memory}/history", summary="What has stood in a memory's place")
async def history(view: LookingAt, memory: MemoryPath) -> schemas.Memories:
    """Oldest first: what was picked from the turns, what a model made of it, what the author wrote over it."""
    try:
        folds = await view.book.history(memory, seat=view.seat)
    except UnknownFold:
        raise unknown("memory") from None
    return schemas.Memories(memories=[await view.remembered(fold) for fold in folds])


@router.put("/stories/{story}/memories/{memory}", summary="Write over a memory")
async def override(visit: Authored, memory: MemoryPath, body: schemas.Override) -> schemas.Memory:
    """Your text stands in its place, under the id that the answer gives, until one of its turns changes. A rewind undoes it."""
    return await visit.view().remembered(await visit.story.override(memory, body.text))


@router.get("/stories/{story}/topics", summary="What is marked")
async def topics(view: LookingAt, prefix: Annotated[str, Query(max_length=limits.NAME)] = "") -> schemas.Topics:
    """The topics of marks that this view may know of."""
    return schemas.Topics(topics=await view.book.topics(view.seat, prefix=prefix))


@router.get("/stories/{story}/marks", summary="List the marks of a topic")
async def marks(
    view: LookingAt, topic: Annotated[schemas.Name, Query(examples=["moment"])], limit: Annotated[int, Query(ge=1, le=limits.PAGE)] = 50
) -> schemas.Marks:
    """Moments and other data that is tied to turns; the highest in rank, in order of their turns."""
    found = await view.book.marks(view.seat, topic, limit=limit)
    return schemas.Marks(marks=[schemas.Mark.model_validate(mark) for mark in found])
