"""What an app refuses before it connects to anything."""

from __future__ import annotations

from typing import Any

import pytest

from faena import Faena, Limit, Order
from faena.errors import ConfigError


@pytest.mark.parametrize(
    "option",
    [{"order": Order.TENANT}, {"tenant_limits": [Limit("1/s")]}, {"tenant_max_running": 2}],
    ids=lambda option: next(iter(option)),
)
def test_lanes_cannot_be_off_where_something_needs_them(option: dict[str, Any]) -> None:
    app = Faena("shop")
    with pytest.raises(ConfigError, match=rf"fair must not be off: {next(iter(option))}"):
        app.queue("q", fair=False, **option)
    assert app.queues == {}
