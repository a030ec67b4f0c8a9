"""The outside services as upstreams, and the six features that depend on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple, Self

from apps.campotech.pace import Pace
from apps.providers.afip import afip_upstream
from apps.providers.afip.upstream import LIMITS
from apps.providers.mercadopago import mercadopago_upstream
from apps.providers.openai import openai_upstream
from apps.providers.whatsapp import whatsapp_upstream
from faena import Breaker, Budget, Faena, Feature, Limit, Upstream

TOTAL: Final = (
    Budget("200 USD", thresholds=[50, 80, 90, 100]),
    Budget("2000 USD", per="month", thresholds=[50, 80, 90, 100]),
)


_SHORTEST: Final = timedelta(milliseconds=100)
"""Of a breaker's times, whatever the speed."""


class Upstreams(NamedTuple):
    """Whom the jobs call."""

    afip: Upstream
    mercadopago: Upstream
    whatsapp: Upstream
    openai: Upstream

    @classmethod
    def declare(cls, app: Faena, pace: Pace, **budgets: Any) -> Self:
        """Declare them; at another speed, windows and open times are shorter."""
        made = cls(
            afip_upstream(app, limits=_at(pace, LIMITS), breaker=_breaker(pace, "60s")),
            mercadopago_upstream(app, breaker=_breaker(pace, "30s")),
            whatsapp_upstream(app, tenant_limits=_at(pace, ["50/min"])),
            openai_upstream(app, breaker=_breaker(pace, "60s"), **budgets),
        )
        app.total_budgets([*TOTAL])
        return made


class Features(NamedTuple):
    """What people notice."""

    ai_whatsapp: Feature
    ai_voice: Feature
    payments: Feature
    invoicing: Feature
    tracking: Feature
    push: Feature

    @classmethod
    def declare(cls, app: Faena, upstreams: Upstreams) -> Self:
        """Declare them, with what is done instead."""
        return cls(
            app.feature(
                "ai.whatsapp",
                fallback="manual",
                upstreams=[upstreams.openai],
                message="una persona responde los mensajes",
            ),
            app.feature(
                "ai.voice",
                fallback="manual",
                upstreams=[upstreams.openai],
                message="una persona escucha los audios",
            ),
            app.feature(
                "payments.mercadopago",
                fallback="manual",
                upstreams=[upstreams.mercadopago],
                message="se puede pagar por transferencia",
            ),
            app.feature(
                "invoicing.afip",
                critical=True,
                fallback="queue",
                upstreams=[upstreams.afip],
                when_open="degraded",
                message="AFIP no responde; las facturas esperan",
            ),
            app.feature("tracking.realtime", fallback="polling"),
            app.feature("notifications.push", fallback="email"),
        )


def _at(pace: Pace, rates: Sequence[str]) -> list[Limit]:
    return [pace.limit(one) for one in rates]


def _breaker(pace: Pace, open_time: str) -> Breaker:
    return Breaker(
        errors=0.5,
        volume=10,
        window=max(_SHORTEST, pace.of("1m")),
        open=max(_SHORTEST, pace.of(open_time)),
        longest=max(_SHORTEST, pace.of("10m")),
        ramp=max(_SHORTEST, pace.of("30s")),
    )
