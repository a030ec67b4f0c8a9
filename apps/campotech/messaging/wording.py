"""What customers are told: the templates that Meta has approved, and the same in other words for
mail and SMS."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

_ZONE: Final = ZoneInfo("America/Argentina/Buenos_Aires")
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """One kind of notification."""

    template: str
    parameters: tuple[str, ...]
    """What stands for {{1}}, {{2}}: names of `facts`."""
    title: str
    text: str


WORDINGS: Final = {
    "scheduled": Wording(
        template="job_scheduled",
        parameters=("customer", "when"),
        title="Tu visita está agendada",
        text="Hola {customer}, {organization} agendó tu visita para el {when}.",
    ),
    "reminder_24h": Wording(
        template="job_reminder",
        parameters=("customer", "when"),
        title="Recordatorio de tu visita",
        text="Hola {customer}, te recordamos la visita de {organization} el {when}.",
    ),
    "reminder_1h": Wording(
        template="job_reminder",
        parameters=("customer", "when"),
        title="Tu visita es en una hora",
        text="Hola {customer}, la visita de {organization} es el {when}, en una hora.",
    ),
    "en_camino": Wording(
        template="job_en_camino",
        parameters=("technician",),
        title="El técnico está en camino",
        text="Hola {customer}, {technician} de {organization} está en camino.",
    ),
    "completed": Wording(
        template="job_completed",
        parameters=("customer",),
        title="El trabajo está terminado",
        text="Hola {customer}, {organization} terminó el trabajo. ¡Gracias!",
    ),
    "cancelled": Wording(
        template="job_cancelled",
        parameters=("customer",),
        title="Tu visita fue cancelada",
        text="Hola {customer}, la visita de {organization} fue cancelada.",
    ),
    "rating": Wording(
        template="rating_request",
        parameters=("customer",),
        title="¿Cómo fue el trabajo?",
        text="Hola {customer}, ¿cómo fue el trabajo de {organization}? Respondé del 1 al 5.",
    ),
    "invoice_overdue": Wording(
        template="invoice_overdue",
        parameters=("customer", "invoice", "amount"),
        title="Tu factura está vencida",
        text="Hola {customer}, la factura {invoice} de {organization} está vencida: {amount}.",
    ),
}


def on_one_line(text: str) -> str:
    """As a template takes it: no line breaks, no long runs of spaces, and never nothing."""
    return " ".join(text.split())[:_LONGEST] or "-"


def local(at: datetime | None) -> str:
    """An instant as people say it here."""
    return "-" if at is None else at.astimezone(_ZONE).strftime("%d/%m a las %H:%M")
