"""The outside services as upstreams, and the six features that depend on them.

Prices, budgets and time limits are those of `apps.providers`. At another speed, the windows of a
minute and more are shorter, and so are the times of breakers; what a service takes in a second
stays as it is, because computers do not work faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple, Self

from apps.campotech.pace import Pace
from apps.providers import afip, mail, maps, mercadopago, openai, push, sms, whatsapp
from apps.providers.afip.upstream import LIMITS as AFIP_LIMITS
from apps.providers.mail.upstream import LIMITS as MAIL_LIMITS
from apps.providers.openai.upstream import LIMITS as OPENAI_LIMITS
from apps.providers.push.upstream import LIMITS as PUSH_LIMITS
from apps.providers.sms.upstream import LIMITS as SMS_LIMITS
from apps.providers.whatsapp.upstream import TENANT_LIMITS as WHATSAPP_LIMITS
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
    push: Upstream
    mail: Upstream
    sms: Upstream
    maps: Upstream
    """No job calls it yet."""

    @classmethod
    def declare(cls, app: Faena, pace: Pace, **budgets: Any) -> Self:
        """Declare them; at another speed, windows and open times are shorter."""
        soon, later = _breaker(pace, "30s"), _breaker(pace, "60s")
        # At ten invoices a minute, an outage is known after five calls, not after ten.
        slow = _breaker(pace, "60s", volume=5, window="10m")
        made = cls(
            # A panic is for operators: AFIP is out for half an hour too often to wait for one.
            afip=afip.afip_upstream(
                app, limits=_at(pace, AFIP_LIMITS), breaker=slow, panic_after=None
            ),
            mercadopago=mercadopago.mercadopago_upstream(app, breaker=soon),
            whatsapp=whatsapp.whatsapp_upstream(
                app, tenant_limits=_at(pace, WHATSAPP_LIMITS), breaker=soon
            ),
            openai=openai.openai_upstream(
                app, limits=_at(pace, OPENAI_LIMITS), breaker=later, **budgets
            ),
            push=push.push_upstream(app, limits=_at(pace, PUSH_LIMITS), breaker=soon),
            mail=mail.mail_upstream(app, limits=_at(pace, MAIL_LIMITS), breaker=later),
            sms=sms.sms_upstream(app, limits=_at(pace, SMS_LIMITS), breaker=soon),
            maps=maps.maps_upstream(app, breaker=soon),
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
            app.feature(
                "notifications.push",
                fallback="email",
                upstreams=[upstreams.push],
                message="los avisos llegan por correo",
            ),
        )


def _at(pace: Pace, rates: Sequence[str]) -> list[Limit]:
    return [pace.limit(one) for one in rates]


def _breaker(pace: Pace, open_time: str, *, volume: int = 10, window: str = "1m") -> Breaker:
    return Breaker(
        errors=0.5,
        volume=volume,
        window=max(_SHORTEST, pace.of(window)),
        open=max(_SHORTEST, pace.of(open_time)),
        longest=max(_SHORTEST, pace.of("10m")),
        ramp=max(_SHORTEST, pace.of("30s")),
    )
