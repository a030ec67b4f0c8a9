"""What ran, and how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

import msgspec

from faena.outcomes import (
    Buried,
    Cancelled,
    Completed,
    ErrorRecord,
    Expired,
    Limited,
    Outcome,
    Released,
    Retried,
    Snoozed,
)

_WORDS: dict[type[Outcome], str] = {
    Completed: "completed",
    Retried: "retried",
    Buried: "dead",
    Cancelled: "cancelled",
    Expired: "expired",
    Snoozed: "snoozed",
    Limited: "limited",
    Released: "released",
}


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt."""

    queue: str
    task: str
    id: str
    number: int
    """Which attempt of the job it was, from 1."""
    ending: str
    """completed, retried, dead, cancelled, expired, snoozed, limited, released or parked."""
    outcome: Outcome
    """The same with its facts, such as how long the retry waits."""
    result: Any = None
    """What a waiter would be given."""
    raised: BaseException | None = None
    """What the handler, or a middleware around it, raised."""
    progress: Any = None
    """The latest progress the handler told; only of an attempt without a broker."""
    log: tuple[str, ...] = ()
    """What the handler logged; only of an attempt without a broker."""
    used: dict[str, int] = {}
    """What the handler said it used, by unit; only of an attempt without a broker."""

    @property
    def error(self) -> ErrorRecord | None:
        """What was recorded of a failure."""
        return getattr(self.outcome, "error", None)

    def __str__(self) -> str:
        line = f"{self.queue}/{self.task} {self.id} attempt {self.number}: {self.ending}"
        if self.error is None:
            return line
        return f"{line}, {self.error.name}: {self.error.message}"


class Report(msgspec.Struct, frozen=True):
    """The attempts of one drain, in the order they ended."""

    runs: tuple[Ran, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many attempts ended in each way; ways that did not happen are left out."""
        return dict(Counter(ran.ending for ran in self.runs))

    def of(self, ending: str) -> tuple[Ran, ...]:
        """The attempts that ended in one way."""
        return tuple(ran for ran in self.runs if ran.ending == ending)

    def check(self) -> Self:
        """Fail the test unless everything completed; the failures are shown with their stacks."""
        bad = [ran for ran in self.runs if ran.ending != "completed"]
        if bad:
            shown = "\n".join(f"  {ran}\n{_stack(ran)}".rstrip() for ran in bad)
            raise AssertionError(
                f"{len(self.runs)} attempts must all complete, got {self.counts}:\n{shown}"
            )
        return self

    def __iter__(self) -> Iterator[Ran]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __str__(self) -> str:
        return "\n".join(map(str, self.runs)) or "nothing ran"


def ending_of(outcome: Outcome) -> str:
    """The word for an outcome, which is the state or the counter it leads to."""
    return _WORDS[type(outcome)]


def _stack(ran: Ran) -> str:
    stack = ran.error.stack if ran.error else None
    return "" if stack is None else "".join(f"    {line}\n" for line in stack.splitlines())
