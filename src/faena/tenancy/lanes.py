"""Where a job waits among others: its tenant's lane, and the chain whose order it keeps.

A lane is named `@` and the tenant. Jobs without one share the lane `@`, always or, where nobody has
asked for lanes, from when they meet those of tenants; the scripts see to that. A chain is named by
what it orders: `q` the queue, `t/acme` a tenant, `k/4/acme/order-7` a key of a tenant, whose name
is measured because it may hold a slash itself. Where keys have limits, jobs say theirs by that name
in any order.
"""

from __future__ import annotations

from typing import Final

from faena.engine.envelope import LaneFacts
from faena.errors import ConfigError
from faena.options import Order, QueueOptions
from faena.options.costs import estimates_text, task_costs
from faena.values.ids import Label, as_label

_NO_LANE: Final = LaneFacts()


def lane_of(tenant: str | None) -> str:
    """The lane of a tenant."""
    return f"@{tenant or ''}"


def lane_named(tenant: Label | None) -> str | None:
    """The lane of a tenant that a caller names; None if no tenant is named."""
    return None if tenant is None else lane_of(as_label("tenant", tenant))


def tenant_of(lane: str) -> str | None:
    """The tenant of a lane; None for the lane of those without one."""
    return lane[1:] or None


def lane_facts(queue: str, options: QueueOptions, tenant: str | None, key: str | None) -> LaneFacts:
    """What an envelope says of a job's lane and chain; raises where an order needs more."""
    order = options.order
    if order in {Order.TENANT, Order.KEY} and tenant is None:
        kept = "tenant" if order is Order.TENANT else "key of a tenant"
        raise ConfigError(
            f"queue {queue} keeps the order of each {kept}: its jobs must have a tenant "
            "(tenant=, --tenant)",
            field="tenant",
        )
    if order is Order.KEY and key is None:
        raise ConfigError(
            f"queue {queue} keeps the order of each key of a tenant: its jobs must have a key "
            "(key=, --key)",
            field="key",
        )
    is_laned = options.is_laned or (options.is_fair and tenant is not None)
    if order is Order.NONE and not is_laned:
        return _NO_LANE
    facts = LaneFacts(lane=lane_of(tenant)) if is_laned else LaneFacts()
    match order:
        case Order.TENANT:
            facts["chain"] = f"t/{tenant}"
        case Order.KEY:
            facts["chain"] = _key_of(tenant, key)
        case Order.QUEUE:
            facts["chain"] = "q"
        case _:
            pass
    if options.key_limits and key is not None:
        facts["key"] = _key_of(tenant, key)
    return facts


def _key_of(tenant: str | None, key: str | None) -> str:
    """The name of a key of a tenant, or of those without one."""
    return f"k/{len(tenant or '')}/{tenant or ''}/{key}"


def task_facts(options: QueueOptions, task: str) -> LaneFacts:
    """What an envelope says of the cost of a task's job that names none."""
    costs = task_costs(options, task)
    return LaneFacts(cost=estimates_text(costs)) if costs else _NO_LANE
