"""Everything that can go wrong, on one page.

    TalekeeperError
    ├── InvalidInput (ValueError)        fix the call: nothing was changed
    │   ├── WrongType (TypeError)        a value of the wrong type, None included
    │   ├── MissingKey                   no memory key, so no memory
    │   ├── UnknownSeat                  no seat of that id in this story
    │   ├── UnknownTurn                  no such turn where you look
    │   ├── UnknownFold                  no such fold in this story
    │   ├── UnknownBranch                no branch of that name
    │   ├── UnknownStory                 no story under that key
    │   ├── NameTaken                    there is a game or a branch of that name already
    │   └── DuplicateId                  that turn id already belongs to another turn
    ├── MemoryBudgetExceeded             a conversation is over its budget, and its policy is "error": raise the budget
    ├── BudgetTooSmall                   raise the budget, or unpin: `needed` says how far
    ├── Conflict                         someone else was first: read again, then retry
    ├── StoreError                       the place where stories are kept
    │   ├── StoreClosed                  closed before the call: open it again
    │   ├── StoreBusy                    locked for too long: retry later
    │   ├── StoreFull                    no space left: make room, then retry
    │   ├── StoreReadOnly                may be read, not written
    │   ├── StoreCorrupt                 damaged: run `talekeeper doctor`, restore a backup
    │   └── WrongStore                   not ours, or made by a newer version
    ├── ModelUnavailable                 a model cannot be used here: install, set or get what the message says
    ├── ModelFailed                      a model gave nothing usable: try again, or let someone else speak
    └── SummaryFailed                    a model's summary was refused or never came (health, never lost turns)

Each class answers one question: do I fix my code, retry, or tell the player?
"""

from __future__ import annotations

import reprlib


class TalekeeperError(Exception):
    """The root of every error that Talekeeper raises on purpose."""


class InvalidInput(TalekeeperError, ValueError):
    """The call makes no sense as it stands; nothing was changed."""


class WrongType(InvalidInput, TypeError):
    """A value of the wrong type, None included."""


class MissingKey(InvalidInput):
    """No memory key, so no memory: every story belongs to exactly one key."""


class UnknownSeat(InvalidInput):
    """The story has no seat of that id."""


class UnknownTurn(InvalidInput):
    """No such turn on this branch."""


class UnknownFold(InvalidInput):
    """No such fold in this story."""


class UnknownBranch(InvalidInput):
    """The story has no branch of that name."""


class UnknownStory(InvalidInput):
    """There is no story under that key."""


class NameTaken(InvalidInput):
    """There is a game or a branch of that name already: choose another."""


class DuplicateId(InvalidInput):
    """A turn id is used once and for ever; this one belongs to a different turn."""


class BudgetTooSmall(TalekeeperError):
    """What is pinned needs more tokens than the budget has."""

    def __init__(self, needed: int, budget: int) -> None:
        super().__init__(f"what is pinned needs {needed} tokens, the budget is {budget}: raise it to {needed} or unpin something")
        self.needed = needed
        self.budget = budget


class MemoryBudgetExceeded(TalekeeperError):
    """A conversation takes more tokens than its budget has, and its overflow policy is "error"."""

    def __init__(self, needed: int, budget: int) -> None:
        super().__init__(
            f"the conversation's memory takes {needed} tokens, total_max_tokens is {budget}: raise it, lower full_zone_turns or "
            f"summary_max_tokens, or choose the overflow policy 'truncate_oldest'"
        )
        self.needed = needed
        self.budget = budget


class Conflict(TalekeeperError):
    """The story moved since it was read; read again, then retry."""


class StoreError(TalekeeperError):
    """The store could not do what was asked; the write did not happen."""


class StoreClosed(StoreError):
    """The store was closed before this call."""


class StoreBusy(StoreError):
    """Another process held the store for too long; retry later."""


class StoreFull(StoreError):
    """There is no space left on the device."""


class StoreReadOnly(StoreError):
    """The store may be read but not written."""


class StoreCorrupt(StoreError):
    """The store's content is damaged."""


class WrongStore(StoreError):
    """The file is not a Talekeeper store, or a newer version made it."""


class ModelUnavailable(TalekeeperError):
    """A language model cannot be used on this machine as it is: a package, a key or a file is missing. The message says which."""


class ModelFailed(TalekeeperError):
    """A language model gave nothing that can be used: it raised, fell silent, declined, or talked nonsense. None of it is story text.

    `role`: for whom it was to speak, if for anyone. `lasting`: trying again will not help. `cut`: nothing is wrong with the answer but
    that it reached its token limit."""

    def __init__(self, reason: str, *, role: str = "", lasting: bool = False, cut: bool = False) -> None:
        super().__init__(f"the {role}'s model failed: {reason}" if role else reason)
        self.reason = reason
        self.role = role
        self.lasting = lasting
        self.cut = cut


class SummaryFailed(TalekeeperError):
    """A model gave no usable summary. Seen in `health`; the extractive fold stays in place.

    `answered`: the model did answer, and its answer was refused; that may be due to the fold rather than the model."""

    def __init__(self, message: str, *, answered: bool = False) -> None:
        super().__init__(message)
        self.answered = answered


class _Short(reprlib.Repr):
    """`repr`, but short whatever it is given: an error is read by people, and stored with a story's health."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 210  # names of the greatest length are quoted whole
        self.maxlong = 40

    def repr_int(self, x: int, level: int) -> str:
        """A number; beyond a thousand bits its size alone, for Python refuses to write very long ones."""
        return super().repr_int(x, level) if x.bit_length() <= 1024 else f"a number of {x.bit_length()} bits"


quoted = _Short().repr
"""A value from outside as a message may quote it: as `repr` gives it, but never long."""


def how_to_install(extra: str) -> str:
    """What to type where an extra is missing: for a package from an index, and for a checkout."""
    return f"pip install 'talekeeper[{extra}]', or in a checkout pip install '.[{extra}]'"


def reason_of(error: BaseException) -> str:
    """What someone else's error says, as a message may tell it: on one line, never long, and of signs that can be stored."""
    try:
        said = str(error)
    except Exception:  # it is someone else's, and may fail at that, too
        said = ""
    said = " ".join(said.encode(errors="replace").decode().replace("\0", "").split())
    return f"{type(error).__name__}: {said[:500]}{'…' * (len(said) > 500)}"
