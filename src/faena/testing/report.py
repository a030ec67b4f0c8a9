"""The report of a drain: which attempts ran, and how they ended."""

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
from faena.resilience.money import Money

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
    """The same with details, such as the delay of a retry."""
    result: Any = None
    """The result as `handle.result()` returns it."""
    raised: BaseException | None = None
    """The exception of the handler, or of a middleware around it."""
    progress: Any = None
    """The last progress of the handler; only for an attempt without a broker."""
    log: tuple[str, ...] = ()
    """The job's log lines; only for an attempt without a broker."""
    used: dict[str, int] = {}
    """The used costs by unit; only for an attempt without a broker."""
    spent: dict[str, Money] = {}
    """What calls to upstreams with prices have cost; only for an attempt without a broker."""

    @property
    def error(self) -> ErrorRecord | None:
        """The error record of a failure."""
        return getattr(self.outcome, "error", None)

    def __str__(self) -> str:
        is_unrun = isinstance(self.outcome, Buried) and not self.outcome.has_run
        which = "no attempt" if is_unrun else f"attempt {self.number}"
        line = f"{self.queue}/{self.task} {self.id} {which}: {self.ending}"
        if self.error is None:
            return line
        return f"{line}, {self.error.name}: {self.error.message}"


class Report(msgspec.Struct, frozen=True):
    """The attempts of one drain, in the order they ended."""

    runs: tuple[Ran, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Ending → number of attempts; endings without attempts are left out."""
        return dict(Counter(ran.ending for ran in self.runs))

    def of(self, ending: str) -> tuple[Ran, ...]:
        """The attempts that ended in one way."""
        return tuple(ran for ran in self.runs if ran.ending == ending)

    def check(self) -> Self:
        """Fail the test unless all attempts completed; shows the failures with their stacks."""
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
    """The word for an outcome: the state or the counter that it leads to."""
    is_parked = isinstance(outcome, Snoozed) and outcome.is_parked
    return "parked" if is_parked else _WORDS[type(outcome)]


def _stack(ran: Ran) -> str:
    stack = ran.error.stack if ran.error else None
    return "" if stack is None else "".join(f"    {line}\n" for line in stack.splitlines())
