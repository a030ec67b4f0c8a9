"""Faults that a stand-in plays: late, refused, cut off before or after the work was done.

slow      answers after `seconds`
status    answers with `status` instead of doing the work; Retry-After is `seconds`, if given
cut       drops the connection before the work is done: nothing happened
lost      does the work, then drops the connection: the caller cannot know
wrong     does the work and answers with wrong data, where the service has any that can be wrong
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["slow", "status", "cut", "lost", "wrong"]
KINDS: tuple[Kind, ...] = ("slow", "status", "cut", "lost", "wrong")


@dataclass(slots=True, kw_only=True)
class Fault:
    """A rule: which requests, for how long, what happens to them."""

    kind: Kind
    operation: str | None = None
    """The only operation that it applies to; None: all."""
    status: int = 503
    seconds: float = 0.0
    times: int | None = None
    """How often it is still played; None: always."""
    until: float | None = None
    """An instant of the monotonic clock at which it ends; None: never."""
    every: int = 1
    """Plays on every n-th request that it applies to."""
    seen: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Refuse what could never be played."""
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.every < 1 or (self.times is not None and self.times < 1) or self.seconds < 0:
            raise ValueError("every and times must be 1 or more, and seconds 0 or more")
        if not 400 <= self.status <= 599:
            raise ValueError(f"status must be from 400 to 599, got {self.status}")

    def applies(self, operation: str, now: float) -> bool:
        """Whether it is played on this request; counts it."""
        if self.operation not in (None, operation) or self.is_over(now):
            return False
        self.seen += 1
        if self.seen % self.every:
            return False
        if self.times is not None:
            self.times -= 1
        return True

    def is_over(self, now: float) -> bool:
        """Whether it is played no more."""
        return self.times == 0 or (self.until is not None and now >= self.until)


class Faults:
    """The rules of one stand-in; of those that apply to a request, each kind is played once."""

    def __init__(self) -> None:
        self.rules: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Play it from now on."""
        self.rules.append(fault)
        return fault

    def clear(self) -> None:
        """Play none."""
        self.rules.clear()

    def of(self, operation: str) -> dict[Kind, Fault]:
        """What is played on a request."""
        now = time.monotonic()
        self.rules = [one for one in self.rules if not one.is_over(now)]
        return _first_of_each([one for one in self.rules if one.applies(operation, now)])


def _first_of_each(faults: Iterable[Fault]) -> dict[Kind, Fault]:
    found: dict[Kind, Fault] = {}
    for one in faults:
        found.setdefault(one.kind, one)
    return found
