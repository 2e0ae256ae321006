"""What a store refuses, in the same words wherever stories are kept."""

from __future__ import annotations

from collections.abc import Sequence

from talekeeper.errors import Conflict, UnknownBranch, UnknownStory


def no_story(story: int) -> UnknownStory:
    return UnknownStory(f"this story is not there: it was deleted, or never made (number {story} of the store)")


def no_branch(story: int, branch: int) -> UnknownBranch:
    return UnknownBranch(f"story {story} has no branch number {branch}")


def other_revision(story: int, rev: int, expected: int) -> Conflict:
    return Conflict(f"story {story} is at revision {rev}, not {expected}: read again, then retry")


def other_head(story: int, branch: int, head: int | None, expected: int) -> Conflict:
    return Conflict(f"branch {branch} of story {story} is at {head}, not {expected}: read again, then retry")


def out_of_line(branch: int, head: int, seq: int) -> Conflict:
    return Conflict(f"entry {seq} of branch {branch} is not right behind its head {head}: read again, then retry")


def id_taken(story: int, ids: Sequence[str]) -> Conflict:
    return Conflict(f"one of the ids {ids!r} belongs to another entry of story {story}: read again, then retry")


def more_to_erase(story: int) -> Conflict:
    return Conflict(f"something was added to story {story} that may have to be erased, too: read again, then retry")
