"""Which jobs of a queue keep their order."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from faena.errors import ConfigError, nearest, shown


class Order(StrEnum):
    """Which jobs of a queue start in the order they were enqueued, one at a time."""

    NONE = "none"
    """None, for the highest throughput."""

    TENANT = "tenant"
    """Those of the same tenant."""

    KEY = "key"
    """Those of the same tenant and key."""

    QUEUE = "queue"
    """All jobs of the queue."""

    @classmethod
    def of(cls, value: Any) -> Order:
        """Read an option: an `Order`, or its name in any case."""
        found = _ORDERS.get(value.lower()) if isinstance(value, str) else None
        if found is not None:
            return found
        raise ConfigError(
            f"order must be a known order, got {shown(value)}; {nearest(value, map(str, Order))}",
            field="order",
            value=value,
        )


_ORDERS: Final[Mapping[str, Order]] = {str(order): order for order in Order}
