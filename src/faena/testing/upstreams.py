"""Stands in for upstreams where one handler is run without a broker.

Calls ask and report as in production, but are answered here: all are allowed, unless the test says
otherwise. What they cost is added up for the test to read.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, cast

from faena.engine import Engine
from faena.engine.calls.resilience import Admitted, Ask, Grant
from faena.errors import ConfigError, shown
from faena.options.fields import check_is
from faena.resilience.gate import Gate
from faena.resilience.upstream import Upstream

_WAIT_US: Final = 60_000_000
"""After which a refused call may be tried again; no test waits for it."""


class StandIn(Gate):
    """Answers instead of a broker."""

    def __init__(self, *, frugal: bool, refused: Sequence[Upstream]) -> None:
        """`frugal`: budgets are used up beyond their soft share; `refused` take no calls."""
        numbers = itertools.count(1)
        super().__init__(cast("Engine", None), {}, lambda: f"inline-{next(numbers)}")
        check_is("frugal", frugal, bool)
        self._is_frugal = frugal
        self._refused = _names(refused)
        self.spent: dict[str, int] = {}
        """What calls have cost, by upstream, in millionths."""

    async def _declared(self, news: Any, asks: Sequence[Ask]) -> Admitted:
        for one in news.settled:
            for name, micro in zip(one.costs[::2], one.costs[1::2], strict=True):
                self.spent[name] = self.spent.get(name, 0) + micro
        return Admitted([self._answer(ask) for ask in asks], [])

    def _answer(self, ask: Ask) -> Grant:
        for name in ask.upstreams:
            if name in self._refused:
                return Grant(0, is_probe=False, upstream=name, reason="open", wait_us=_WAIT_US)
        return Grant(ask.number, False, "", "", 0, is_soft=self._is_frugal)


def _names(refused: Any) -> set[str]:
    if isinstance(refused, list | tuple) and all(isinstance(one, Upstream) for one in refused):
        return {one.name for one in refused}
    raise ConfigError(
        f"refused must be a list of upstreams such as [afip], got {shown(refused)}",
        field="refused",
        value=refused,
    )
