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
def test_a_promise_about_tenants_that_would_not_be_kept_is_refused(option: dict[str, Any]) -> None:
    app = Faena("shop")
    with pytest.raises(ConfigError, match=f"{next(iter(option))} is not served"):
        app.queue("q", **option)
    assert app.queues == {}
