"""Budgets as anybody would write them down: every lot and every sum, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from faena.engine.calls.resilience import Ask, Settled
from faena.resilience.money import Budget
from faena.values.money import Money

CALL = 7
"""What a call of any upstream is estimated to cost."""
PLENTY = 100
LOOK_AGAIN_US = 1_000_000


class Drawn(NamedTuple):
    """A budget that a call draws on."""

    scope: str
    budget: Budget
    reason: str
    upstream: str

    @property
    def limit(self) -> int:
        return self.budget.money.micro


class Expected(NamedTuple):
    """What an ask should be answered."""

    number: int
    upstream: str
    reason: str
    wait_us: int
    advance: int
    is_soft: bool


@dataclass
class Lot:
    needs: Mapping[str, int]
    left: int
    ends_at: int


def period_of(now: int, per: str) -> tuple[str, int]:
    """The name of a day or a month, and when it ends."""
    at = datetime.fromtimestamp(now // 10**6, UTC).replace(hour=0, minute=0, second=0)
    if per == "day":
        end = at + timedelta(days=1)
        return f"{at:%Y%m%d}", int(end.timestamp()) * 10**6
    end = (at.replace(day=1) + timedelta(days=32)).replace(day=1)
    return f"{at:%Y%m}", int(end.timestamp()) * 10**6


@dataclass
class Model:
    """All upstreams have one currency."""

    budgets: MutableMapping[str, Sequence[Budget]]
    totals: Sequence[Budget]
    lots: dict[str, Lot] = field(default_factory=dict[str, Lot])
    spent: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """(period, scope) → sum; scopes as the server has them, with those of tenants and tasks."""
    warned: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    used_up: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """(period, scope) → the largest budget that was told to be used up."""
    events: list[str] = field(default_factory=list[str])

    def reserved(self, scope: str) -> int:
        return sum(lot.left * lot.needs.get(scope, 0) for lot in self.lots.values())

    def drawn(self, upstream: str, tenant: str) -> Iterator[Drawn]:
        for one in self.budgets[upstream]:
            if not one.each_tenant:
                yield Drawn(f"s/{upstream}", one, "budget", upstream)
            elif tenant:
                yield Drawn(f"s/{upstream}/@{tenant}", one, "tenant_budget", upstream)
        for one in self.totals:
            yield Drawn("t/USD", one, "total_budget", upstream)

    def bury(self, now: int) -> None:
        """Holders that are taken for dead leave nothing."""
        self.lots = {name: lot for name, lot in self.lots.items() if lot.ends_at > now}

    def settle(self, told: Settled, now: int) -> None:
        lot = self.lots.get(told.lot)
        if lot is not None:
            lot.left -= min(told.ended, lot.left)
        for upstream, micro in zip(told.costs[::2], told.costs[1::2], strict=True):
            if micro:
                drawn = [*self.drawn(upstream, told.tenant)]
                before = [self._reached(one, now) for one in drawn]
                self._count(upstream, told.tenant, told.task, micro, now)
                for one, was in zip(drawn, before, strict=True):
                    self._warn(one, was, now)
                    self._tell_used_up(one, now)

    def ask(self, asked: Ask, now: int) -> Expected:
        least = max(asked.number, 1)
        granted, upstream, reason, until, is_soft = self.judge(asked, least, now)
        for one in self._needs(asked)[1]:
            self._tell_used_up(one, now)
        advance = self.advance(asked, now) if granted == least else 0
        granted = min(granted, asked.number)
        self.reserve(asked, granted + advance, now)
        return Expected(granted, upstream, reason, until - now, advance, is_soft)

    def judge(self, asked: Ask, number: int, now: int) -> tuple[int, str, str, int, bool]:
        """How many of so many calls there is money for; else whose is used up, why, until when."""
        needs, drawn = self._needs(asked)
        granted, by, until = number, ("", ""), now
        for one in drawn:
            room = self._room(one, needs[one.scope], now)
            if one.budget.hard and room < granted:
                name, end = period_of(now, one.budget.per)
                is_spent = self.spent[name, one.scope] + needs[one.scope] > one.limit
                reserved = "tenant_reserved" if one.reason == "tenant_budget" else "reserved"
                granted, by = room, (one.upstream, one.reason if is_spent else reserved)
                until = end if is_spent else now + LOOK_AGAIN_US
        is_soft = any(
            one.budget.soft
            and self._used(one, now) + needs[one.scope] > one.budget.soft * one.limit
            for one in drawn
        )
        return granted, *by, until, is_soft

    def advance(self, asked: Ask, now: int) -> int:
        """How many more may be granted in advance, when all are granted."""
        needs, drawn = self._needs(asked)
        hard = [self._room(one, needs[one.scope], now) for one in drawn if one.budget.hard]
        room = min(hard, default=2**53)
        return max(0, min(asked.advance, (room - asked.number) // PLENTY))

    def reserve(self, asked: Ask, number: int, now: int) -> None:
        needs, _ = self._needs(asked)
        if number and needs:
            self.lots[asked.stem] = Lot(needs, number, now + asked.lasting_us)

    def _needs(self, asked: Ask) -> tuple[Mapping[str, int], Sequence[Drawn]]:
        """What each call would reserve, by scope, and the budgets that it draws on."""
        needs: defaultdict[str, int] = defaultdict(int)
        drawn: list[Drawn] = []
        for upstream, micro in zip(asked.upstreams, asked.estimates, strict=True):
            found = [*self.drawn(upstream, asked.tenant)] if micro else []
            for scope in {one.scope for one in found}:
                needs[scope] += micro
            drawn += found
        return needs, drawn

    def _used(self, one: Drawn, now: int) -> int:
        name, _ = period_of(now, one.budget.per)
        return self.spent[name, one.scope] + self.reserved(one.scope)

    def _room(self, one: Drawn, need: int, now: int) -> int:
        return max(0, (one.limit - self._used(one, now)) // need)

    def _count(self, upstream: str, tenant: str, task: str, micro: int, now: int) -> None:
        scopes = [f"s/{upstream}", "t/USD"]
        scopes += [f"k/{upstream}/{task}"] if task else []
        scopes += [f"s/{upstream}/@{tenant}"] if tenant else []
        for per in ("day", "month"):
            for scope in scopes:
                self.spent[period_of(now, per)[0], scope] += micro

    def _reached(self, one: Drawn, now: int) -> int:
        name, _ = period_of(now, one.budget.per)
        percent = self.spent[name, one.scope] * 100
        return max((t for t in one.budget.thresholds if percent >= t * one.limit), default=0)

    def _warn(self, one: Drawn, was: int, now: int) -> None:
        name, percent = period_of(now, one.budget.per)[0], self._reached(one, now)
        if percent > was and percent > self.warned[name, one.scope]:
            self.warned[name, one.scope] = percent
            words = f"{percent}% of {_budget(one, name)} is spent{_spender(one)}"
            self.events.append(f"budget_threshold {one.scope[2:]}\n{words}")

    def _tell_used_up(self, one: Drawn, now: int) -> None:
        name, _ = period_of(now, one.budget.per)
        spent, told = self.spent[name, one.scope], self.used_up[name, one.scope]
        if one.budget.hard and spent + CALL > one.limit > told:
            self.used_up[name, one.scope] = one.limit
            words = f"{_budget(one, name)} is used up{_spender(one)}: {Money(spent, 'USD')}"
            costs = f"a call of {one.upstream} may cost {Money(CALL, 'USD')}"
            self.events.append(f"budget_used_up {one.scope[2:]}\n{words} is spent, and {costs}")


def _budget(one: Drawn, period: str) -> str:
    days = "-".join(part for part in (period[:4], period[4:6], period[6:]) if part)
    return f"{one.budget.money} for {days}"


def _spender(one: Drawn) -> str:
    if one.reason == "total_budget":
        return " by all upstreams"
    _, _, tenant = one.scope.partition("/@")
    return f" by tenant {tenant}" if tenant else ""
