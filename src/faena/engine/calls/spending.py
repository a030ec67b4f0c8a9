"""What was spent, and how much of budgets is used: each is one reading call."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from faena.engine.calls.budget_view import BudgetRow, read_micro
from faena.engine.calls.resilience import SHARD
from faena.engine.engine import Engine


class SeenBudgets(msgspec.Struct, array_like=True, frozen=True):
    """All budgets at one instant."""

    now: int
    declared: Sequence[str]
    """The upstreams that the server knows."""
    has_totals: bool
    rows: Sequence[BudgetRow]


class ServiceRow(msgspec.Struct, array_like=True, frozen=True):
    """An upstream that has prices."""

    name: str
    currency: str
    tenants: int
    top: Sequence[str]
    """Those that have spent most, each with how much behind it."""


class SeenCosts(msgspec.Struct, array_like=True, frozen=True):
    """The costs of a period. Sums are flat: each name is followed by its amount."""

    now: int
    day: str
    """Empty if the period is the month."""
    month: str
    spent: Sequence[str]
    month_spent: Sequence[str]
    days: Sequence[Sequence[str]]
    services: Sequence[ServiceRow]
    budgets: Sequence[BudgetRow]


_read_budgets = msgspec.msgpack.Decoder(SeenBudgets).decode
_read_costs = msgspec.msgpack.Decoder(SeenCosts).decode


async def budgets(engine: Engine, tenant: str = "") -> SeenBudgets:
    """All budgets now; those of each tenant for this one, or for the one that has spent most."""
    return _read_budgets(await engine.ask("budget_views", SHARD, tenant=tenant))


async def costs(engine: Engine, *, day: str, month: str, top: int) -> SeenCosts:
    """The costs of a day, of a month, or of this month."""
    return _read_costs(await engine.ask("cost_report", SHARD, day=day, month=month, top=top))


async def spent_of(engine: Engine, period: str, upstream: str, tenants: Sequence[str]) -> list[int]:
    """What tenants have spent at an upstream in a day or a month, in millionths."""
    scores = await engine.command("ZMSCORE", SHARD, f"spenders:{period}/{upstream}", *tenants)
    return [0 if one is None else read_micro(one.decode()) for one in scores]
