"""What jobs cost in the units that a queue limits, and the form that scripts read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faena.errors import ConfigError, nearest, shown
from faena.limits import check_unit
from faena.options import QueueOptions
from faena.options.cost import MOST_COST, NO_COSTS
from faena.values.numbers import check_whole


def cost_fact(queue: str, options: QueueOptions, costs: Mapping[str, int]) -> str:
    """A job's estimates as a fact of its spec; empty if it has none.

    Refuses a unit that no limit of the queue counts, and an estimate above a limit: that job could
    never start.
    """
    for unit, number in costs.items():
        bounds = [one for one in (*options.limits, *options.tenant_limits) if one.cost == unit]
        if not bounds:
            raise ConfigError(
                f"cost must name a unit that queue {queue} limits, got {shown(unit)}; "
                f"{nearest(unit, options.units)}",
                field="cost",
                value=costs,
            )
        least = min(bounds, key=lambda one: one.max)
        if number > least.max:
            raise ConfigError(
                f"cost of a job of queue {queue} must be at most {least.max} {unit}, because of "
                f"its limit {least}, got {number}: such a job could never start",
                field="cost",
                value=costs,
            )
    return estimates_text(costs)


def estimates_text(costs: Mapping[str, int]) -> str:
    """Estimates in the form used in specs and settings."""
    return ",".join(f"{unit}:{number}" for unit, number in sorted(costs.items()))


def read_costs(text: str) -> Mapping[str, int]:
    """Reads what `estimates_text` wrote."""
    pairs = (part.partition(":") for part in text.split(",") if part)
    return {unit: int(number) for unit, _, number in pairs}


def task_costs(options: QueueOptions, task: str) -> Mapping[str, int]:
    """The estimates of a task's jobs, in the units that its queue limits."""
    costs = options.costs.get(task, NO_COSTS)
    return {unit: number for unit, number in costs.items() if unit in options.units}


def check_units(queue: str, declared: QueueOptions, wanted: QueueOptions) -> QueueOptions:
    """Refuse limits in a unit that no limit in code counts: jobs do not carry that cost."""
    for unit in sorted(wanted.units - declared.units):
        field = "limits" if unit in {one.cost for one in wanted.limits} else "tenant_limits"
        raise ConfigError(
            f"{field} of queue {queue} must count a unit that a limit in code counts, got "
            f"{unit!r}: its jobs do not carry that cost",
            field=field,
            value=getattr(wanted, field),
        )
    return wanted


def check_used(used: Mapping[str, Any]) -> Mapping[str, int]:
    """Return what a handler reports as used, by unit, checked."""
    return {
        check_unit(unit): check_whole(f"used {unit}", number, least=0, most=MOST_COST)
        for unit, number in used.items()
    }
