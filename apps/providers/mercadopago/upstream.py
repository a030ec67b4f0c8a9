"""MercadoPago as an upstream: 15 s for a call, and none for 30 s when half of them fail."""

from __future__ import annotations

from typing import Any

from apps.providers.outcome import SORTING
from faena import Breaker, Faena, Upstream


def mercadopago_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`.

    MercadoPago publishes no limits: a 429 stops all calls for as long as it says.
    """
    options: dict[str, Any] = {
        "timeout": "15s",
        "breaker": Breaker(errors=0.5, open="30s"),
        "sorting": SORTING,
        **overrides,
    }
    return app.upstream("mercadopago", **options)
