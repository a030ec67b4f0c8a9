"""Breakers, limits, budgets and features together: what one `admit` must answer and change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from faena.engine.calls.resilience import Admitted, Ask, Grant, Report, Settled
from faena.resilience.feature_views import worst
from tests.properties import budget_model, upstream_model
from tests.properties.budget_model import period_of

WHEN_OPEN: Final = {"afip": "offline", "ai": "degraded"}
"""The state of a feature while its upstream takes no calls, by upstream."""


class Model(upstream_model.Model):
    """Upstreams that cost money, and a feature of each."""

    def __init__(self, money: budget_model.Model, call_micro: int) -> None:
        super().__init__()
        self.money, self.call_micro = money, call_micro
        self.used_up: dict[str, int] = {}
        """Upstream → until when its budget leaves no room for another call."""

    def turn(
        self, reports: Sequence[Report], settled: Sequence[Settled], asks: Sequence[Ask], now: int
    ) -> Admitted:
        """Holders that are gone and what has ended come first, then the questions."""
        self.money.bury(now)
        for one in settled:
            self.money.settle(one, now)
            for name, micro in zip(one.costs[::2], one.costs[1::2], strict=True):
                if micro:
                    self._note_used_up(name, now)
        return self.admit(reports, asks, now)

    def _judge(self, ask: Ask, now: int) -> Grant:
        granted, said = self.room_for(ask, now)
        number, upstream, reason, until, is_soft = self.money.judge(ask, granted, now)
        for name, micro in zip(ask.upstreams, ask.estimates, strict=True):
            if micro:
                self._note_used_up(name, now)
        if number < granted:
            granted, said = number, (upstream, reason, until)
        more = 0
        if granted == upstream_model.least(ask):
            more = min(self._advance(ask, now), self.money.advance(ask, now))
        grant = self._grant(ask, granted, said, more, now)
        self.money.reserve(ask, grant.number + more, now)
        return grant._replace(is_soft=is_soft)

    def _note_used_up(self, upstream: str, now: int) -> None:
        for one in self.money.drawn(upstream, ""):
            name, end = period_of(now, one.budget.per)
            if one.budget.hard and self.money.spent[name, one.scope] + self.call_micro > one.limit:
                self.used_up[upstream] = max(self.used_up.get(upstream, 0), end)

    # -- features ------------------------------------------------------------------------------

    def feature(self, upstream: str, now: int) -> str:
        """The worst that its breaker, a panic and its budgets say."""
        scope, states = self.scope(upstream, ""), ["healthy"]
        is_budget_used_up = self.used_up.get(upstream, 0) > now
        is_open = scope.state in {"open", "half_open"}
        if is_open or is_budget_used_up or self.is_in_panic(upstream, now):
            states.append(WHEN_OPEN[upstream])
        ramp_us = self.options[upstream].breaker.ramp_us
        if scope.state == "recovering" and now < scope.since + ramp_us:
            states.append("degraded")
        return worst(states)
