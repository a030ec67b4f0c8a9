"""What jobs cost in the units that a queue limits: estimates, and how the scripts read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faena.errors import ConfigError, nearest, shown
from faena.limits import check_unit
from faena.options import QueueOptions
from faena.options.cost import MOST_COST, NO_COSTS
from faena.values.numbers import check_whole


def cost_fact(queue: str, options: QueueOptions, costs: Mapping[str, int]) -> str:
    """A job's estimates as its first line has them; empty where it has none.

    Refuses a unit that no limit of the queue names, and an estimate that none would ever let start.
    """
    for unit, number in costs.items():
        bounds = [one for one in (*options.limits, *options.tenant_limits) if one.cost == unit]
        if not bounds:
            raise ConfigError(
                f"cost must name what a limit of queue {queue} counts, got {shown(unit)}; "
                f"{nearest(unit, options.units)}",
                field="cost",
                value=costs,
            )
        least = min(bounds, key=lambda one: one.max)
        if number > least.max:
            raise ConfigError(
                f"cost of a job of queue {queue} must be at most {least.max} {unit}, which is all "
                f"that {least} lets start, got {number}",
                field="cost",
                value=costs,
            )
    return estimates_text(costs)


def estimates_text(costs: Mapping[str, int]) -> str:
    """Estimates in the one form that first lines and settings have."""
    return ",".join(f"{unit}:{number}" for unit, number in sorted(costs.items()))


def read_costs(text: str) -> Mapping[str, int]:
    """The estimates of such a text."""
    pairs = (part.partition(":") for part in text.split(",") if part)
    return {unit: int(number) for unit, _, number in pairs}


def task_costs(options: QueueOptions, task: str) -> Mapping[str, int]:
    """What a task's jobs are estimated at in the units that its queue limits."""
    costs = options.costs.get(task, NO_COSTS)
    return {unit: number for unit, number in costs.items() if unit in options.units}


def check_units(queue: str, declared: QueueOptions, wanted: QueueOptions) -> QueueOptions:
    """Refuse an edit whose limits count what code has no limit by: no job could say its cost."""
    for unit in sorted(wanted.units - declared.units):
        field = "limits" if unit in {one.cost for one in wanted.limits} else "tenant_limits"
        raise ConfigError(
            f"{field} of queue {queue} must be by a cost that code declares a limit by, got "
            f"{unit!r}: its jobs do not say that cost",
            field=field,
            value=getattr(wanted, field),
        )
    return wanted


def check_used(used: Mapping[str, Any]) -> Mapping[str, int]:
    """Return what a handler says it has used, by unit."""
    return {
        check_unit(unit): check_whole(f"used {unit}", number, least=0, most=MOST_COST)
        for unit, number in used.items()
    }
