"""What happens on the day, and when: made of a seed before it begins.

Businesses work from 8 to 18. Each of them invoices, is written to, and comes back with what its
technicians did without a network. Troubles have their fixed hours.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["invoice", "text", "voice", "sync", "event", "campaign", "trouble"]
OPENS, CLOSES = 8 * 60, 18 * 60
"""Minutes of the day."""
INVOICES, TEXTS, SYNCS, EVENTS = 5, 3, 3, 10
"""Of each business."""
NOISY: Final = 0
"""The business that sends a campaign, and bills a month at once."""
CAMPAIGN, MONTH = 200, 30
CAMPAIGN_AT: Final = 9 * 60 + 30
TROUBLES: Final = {
    "outage": 11 * 60,
    "kill": 11 * 60 + 12,
    "kill again": 14 * 60,
}
_VOICE_EVERY: Final = 3
_PAID: Final = 0.5
"""The part of invoices that somebody pays on the same day."""
_ASKED: Final = (
    "Hola, ¿atienden hoy?",
    "Se rompió la caldera, ¿pueden venir?",
    "¿Cuánto sale cambiar una canilla?",
    "¿A qué hora viene el técnico?",
    "Gracias, quedó perfecto",
)
_SAID: Final = (
    "Hola, se me rompió el termotanque, vivo en Rivadavia 1234, ¿pueden venir mañana a la tarde?",
    "Necesito un electricista urgente, saltó la térmica y no vuelve",
    "Quisiera un presupuesto para pintar el living",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that somebody does."""

    at: float
    """Minutes of the day."""
    business: int
    kind: Kind
    number: int = 0
    """Tells acts of one kind of one business apart."""
    given: Any = None


def plan_day(organizations: int, seed: int, *, day: int = 1) -> list[Act]:
    """All that happens on a day, in its order."""
    chance = random.Random(f"{seed} {day}")
    acts = [one for number in range(organizations) for one in _business(number, chance)]
    acts += [
        Act(at=at, business=NOISY, kind="trouble", given=name) for name, at in TROUBLES.items()
    ]
    acts.append(Act(at=CAMPAIGN_AT, business=NOISY, kind="campaign"))
    return sorted(acts, key=lambda one: one.at)


def _business(business: int, chance: random.Random) -> list[Act]:
    def moment(until: float = CLOSES) -> float:
        return chance.uniform(OPENS, until)

    acts: list[Act] = []
    for number in range(INVOICES):
        at, cents = moment(CLOSES - 30), chance.randrange(500_000, 20_000_000)
        is_paid = chance.random() < _PAID
        acts.append(
            Act(at=at, business=business, kind="invoice", number=number, given=(cents, is_paid))
        )
    acts += [
        _act(moment(), business, "text", number, chance.choice(_ASKED)) for number in range(TEXTS)
    ]
    if business % _VOICE_EVERY == 0:
        acts.append(_act(moment(), business, "voice", 0, chance.choice(_SAID)))
    acts += [_act(moment(), business, "sync", number) for number in range(SYNCS)]
    acts += [_act(moment(), business, "event", number) for number in range(EVENTS)]
    return acts


def _act(at: float, business: int, kind: Kind, number: int, given: Any = None) -> Act:
    return Act(at=at, business=business, kind=kind, number=number, given=given)
