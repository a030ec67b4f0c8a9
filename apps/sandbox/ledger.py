"""What a stand-in was asked, and what it answered: kept outside of the system under test."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request."""

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

    def note(
        self, operation: str, outcome: str, *, began_at: float, subject: str = "", **detail: Any
    ) -> None:
        """Add a request that has just ended."""
        self.entries.append(
            Entry(
                operation=operation,
                outcome=outcome,
                subject=subject,
                detail=detail,
                began_at=began_at,
                ended_at=time.monotonic(),
            )
        )

    def of(self, operation: str, outcome: str | None = None) -> list[Entry]:
        """Those of one operation, and of one outcome if given."""
        return self.where(lambda one: one.operation == operation and outcome in (None, one.outcome))

    def where(self, is_wanted: Callable[[Entry], bool]) -> list[Entry]:
        """Those that a function picks."""
        return [one for one in self.entries if is_wanted(one)]
