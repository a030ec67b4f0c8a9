"""Questions of a process to its gate, how many calls may be made, and the answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from faena.engine.calls.resilience import Grant
from faena.resilience.call_group import CallGroup, Permits
from faena.resilience.permits import Permit


class Wanted(NamedTuple):
    """A number of calls of a group."""

    group: CallGroup
    number: int
    lasting_us: int = 0
    """How long its job may run; a call may be made until then."""
    estimate: int | None = None
    """What a call of one upstream costs at most, in millionths; None: as usual."""

    def has_permits(self, now: float) -> bool:
        """Whether what was granted in advance will do; never if more of that is wanted."""
        return self.number > 0 and self.group.has(self.number, now)


class Granted(NamedTuple):
    """The answer: how many of them may begin, with what, and what refused the rest."""

    permits: Permits
    grant: Grant


class Asked(NamedTuple):
    """A question that waits for its answer."""

    wanted: Sequence[Wanted]
    answered: asyncio.Future[list[Granted]]

    def answer(self, answer: list[Granted]) -> None:
        """The server has decided."""
        if self.answered.done():  # its caller was cancelled
            _give_back(answer)
        else:
            self.answered.set_result(answer)

    def answer_from_advance(self) -> bool:
        """Another question of the same groups may have brought enough permits meanwhile."""
        now = time.monotonic()
        usual = [one for one in self.wanted if one.estimate is None and one.has_permits(now)]
        if len(usual) < len(self.wanted):
            return False
        if not self.answered.done():
            self.answered.set_result([_taken(one.group, one.number) for one in usual])
        return True


def refuse(asked: Sequence[Asked], error: Exception) -> None:
    """Tell all who ask that there is no answer."""
    for one in asked:
        if not one.answered.done():
            one.answered.set_exception(error)


def _give_back(answer: Sequence[Granted]) -> None:
    """Their caller was cancelled, so the calls are not made."""
    for permits, grant in answer:
        group = permits.group
        for number in range(1, grant.number + 1 if grant.is_probe else 1):
            for service in group.services:
                Permit(permits, service, permits.probe(number)).drop()
        permits.end(grant.number)


def _taken(group: CallGroup, number: int) -> Granted:
    group.permits.left -= number
    group.used += number
    return Granted(group.permits, Grant(number, False, "", "", 0))
