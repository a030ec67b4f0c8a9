"""What the audit trail says, in Spanish."""

from __future__ import annotations

from typing import Final

AUDIT: Final[dict[str, str]] = {
    "Before and after": "Antes y después",
    "Changes": "Cambios",
    "Changes, the newest first": "Cambios, lo más nuevo primero",
    "Filter the trail": "Filtrar el registro",
    "From (UTC)": "Desde (UTC)",
    "No change matches": "Ningún cambio coincide",
    "None of these matches": "Ninguno de estos coincide",
    "Nothing was changed yet": "Todavía no se cambió nada",
    "Outcome": "Resultado",
    "Show all": "Mostrar todo",
    "The last: {who}, {time}.": "El último: {who}, {time}.",
    "To (UTC)": "Hasta (UTC)",
    "What": "Qué",
    "What people and programs change here is recorded, with their names.": (
        "Lo que personas y programas cambian aquí queda registrado, con sus nombres."
    ),
    "When": "Cuándo",
    "Who": "Quién",
    "Who has changed what here, the newest first.": "Quién cambió qué aquí, lo más nuevo primero.",
    "link": "enlace",
    "no": "no",
    "nothing else was told": "no se informó nada más",
    "proxy": "proxy",
    "refused": "rechazado",
    "session": "sesión",
    "token": "token",
    "under way": "en curso",
    "yes": "sí",
    "{n} changes were looked through.": "Se revisaron {n} cambios.",
}
