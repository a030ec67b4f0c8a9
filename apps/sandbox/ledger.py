"""What a stand-in was asked, and what it answered: kept outside of the system under test."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request."""

    number: int = 0
    """From 1, in the order in which they ended."""
    operation: str
    """What was asked for, such as `FECAESolicitar` or `POST /v1/payments`."""
    outcome: str
    """What became of it: `ok`, `refused` by the rules of the service, or the kind of a fault."""
    subject: str = ""
    """What it was about: a voucher, a payment, a recipient."""
    detail: dict[str, Any] = field(default_factory=dict[str, Any])
    began_at: float
    """Seconds of the monotonic clock of the machine."""
    ended_at: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Ledger:
    """The requests of one stand-in, in the order in which they ended."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.most: int | None = None
        """How many of the last entries are kept, at least; None: all. Counts are of all."""
        self._counts = Counter[tuple[str, str]]()
        self._total = 0

    def note(
        self, operation: str, outcome: str, *, began_at: float, subject: str = "", **detail: Any
    ) -> None:
        """Add a request that has just ended."""
        self._total += 1
        self._counts[operation, outcome] += 1
        self.entries.append(
            Entry(
                number=self._total,
                operation=operation,
                outcome=outcome,
                subject=subject,
                detail=detail,
                began_at=began_at,
                ended_at=time.monotonic(),
            )
        )
        if self.most is not None and len(self.entries) > 2 * self.most:
            del self.entries[: -self.most]  # half of them at once: each is moved once

    def of(self, operation: str, outcome: str | None = None) -> list[Entry]:
        """Those of one operation, and of one outcome if given."""
        return self.where(lambda one: one.operation == operation and outcome in (None, one.outcome))

    def where(self, is_wanted: Callable[[Entry], bool]) -> list[Entry]:
        """Those that a function picks."""
        return [one for one in self.entries if is_wanted(one)]

    def after(self, number: int) -> list[Entry]:
        """Those that came after one, as far as they are kept."""
        return self.entries[bisect_right(self.entries, number, key=lambda one: one.number) :]

    def counts(self) -> dict[str, dict[str, int]]:
        """How many requests there were, by operation and outcome."""
        found: dict[str, dict[str, int]] = {}
        for (operation, outcome), count in self._counts.items():
            found.setdefault(operation, {})[outcome] = count
        return found
