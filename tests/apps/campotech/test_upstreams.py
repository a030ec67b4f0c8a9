"""Every service is an upstream with the limits, breakers and budgets of the specification."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from apps.campotech.pace import Pace
from apps.campotech.system import System
from apps.campotech.upstreams import TOTAL, Features, Upstreams

from faena import Budget, Faena
from faena.testing import Harness

# seconds of a call, seconds of an open breaker, calls in a window: of AFIP, MercadoPago and
# WhatsApp as specified (004 6A.1.1, 6A.3.1, 6A.4.1; 000 2.1), of the others careful estimates
FIGURES = {
    "afip": (30, 60, ["60/min", "1000/h", "10000/day"]),
    "mercadopago": (15, 30, []),
    "whatsapp": (15, 30, ["80/s"]),
    "openai": (60, 60, ["500/min"]),
    "push": (15, 30, ["10000/min"]),
    "mail": (35, 60, ["600/min"]),
    "twilio": (15, 30, ["100/min"]),
    "maps": (10, 30, ["50/s"]),
}

# dollars of a day and of a month, and at how many percent somebody is told: 004 8A.2.1
BUDGETS = {
    "openai": ("50 USD", "500 USD", (50, 80, 100)),
    "twilio": ("20 USD", "200 USD", (80, 100)),
    "maps": ("30 USD", "300 USD", (80, 100)),
}
PRICES = {  # 004 6A.2.1 and 8A.1.3
    ("openai", "gpt-4-turbo.input"): ("0.01 USD", 1000),
    ("openai", "gpt-4-turbo.output"): ("0.03 USD", 1000),
    ("openai", "gpt-4.input"): ("0.03 USD", 1000),
    ("openai", "gpt-4.output"): ("0.06 USD", 1000),
    ("openai", "gpt-3.5-turbo.input"): ("0.0005 USD", 1000),
    ("openai", "gpt-3.5-turbo.output"): ("0.0015 USD", 1000),
    ("openai", "whisper-1.minute"): ("0.006 USD", 1),
    ("twilio", "segment"): ("0.0079 USD", 1),
    ("maps", "call"): ("0.005 USD", 1),
}


def declared(speed: float = 1) -> Upstreams:
    return Upstreams.declare(Faena("test"), Pace(speed))


def test_time_limits_breakers_and_limits_are_those_of_the_specification() -> None:
    found = {
        one.name: (
            one.options.timeout_us / 1e6,
            one.options.breaker.open_us / 1e6,
            [str(limit) for limit in one.options.limits],
        )
        for one in declared()
    }
    assert found == FIGURES
    assert {one.options.breaker.errors for one in declared()} == {0.5}
    assert [str(one) for one in declared().whatsapp.options.tenant_limits] == ["50/min"]


def amounts(budgets: Iterable[Budget]) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(one.amount, one.per, tuple(one.thresholds)) for one in budgets]


def test_budgets_and_prices_are_those_of_the_specification() -> None:
    found = {one.name: amounts(one.options.budgets) for one in declared() if one.options.budgets}
    assert found == {
        name: [(day, "day", told), (month, "month", told)]
        for name, (day, month, told) in BUDGETS.items()
    }
    told = (50, 80, 90, 100)
    assert amounts(TOTAL) == [("200 USD", "day", told), ("2000 USD", "month", told)]
    prices = {
        (upstream.name, one.item): (one.amount, one.per)
        for upstream in declared()
        for one in upstream.options.prices
    }
    assert prices == PRICES


def test_what_is_a_time_of_the_business_is_shorter_at_another_speed() -> None:
    slow, fast = declared(), declared(60)
    for one, other in zip(slow, fast, strict=True):
        assert other.options.breaker.open_us * 60 == one.options.breaker.open_us
        assert other.options.timeout_us == one.options.timeout_us  # computers are not faster
    limits = {one.name: [str(limit) for limit in one.options.limits] for one in fast}
    assert (limits["mail"], limits["push"], limits["twilio"]) == (["600/s"], ["10000/s"], ["100/s"])
    assert (limits["whatsapp"], limits["maps"]) == (["80/s"], ["50/s"])


@pytest.mark.parametrize(
    ("upstream", "feature"),
    [
        ("openai", "ai.whatsapp"),
        ("openai", "ai.voice"),
        ("mercadopago", "payments.mercadopago"),
        ("afip", "invoicing.afip"),
        ("push", "notifications.push"),
    ],
)
async def test_a_feature_follows_the_breaker_of_its_service(
    system: System, harnessed: Harness, upstream: str, feature: str
) -> None:
    await system.app.features.follow()
    found: Features = system.features
    (one,) = [each for each in found if each.name == feature]
    assert one.is_healthy
    await harnessed.open_breaker(getattr(system.upstreams, upstream))
    await system.app.features.follow()
    assert (one.is_healthy, one.uses_fallback) == (False, True)
