"""The audit trail, in Spanish."""

from __future__ import annotations

from typing import Final

AUDIT: Final[dict[str, str]] = {
    "After": "Después",
    "Before": "Antes",
    "Changes": "Cambios",
    "Nothing was changed yet": "Todavía no se cambió nada",
    "Outcome": "Resultado",
    "What": "Qué",
    "What people and programs change here is recorded, with their names.": (
        "Lo que personas y programas cambian aquí queda registrado, con sus nombres."
    ),
    "When": "Cuándo",
    "Who": "Quién",
    "Who has changed what here, the newest first": "Quién cambió qué aquí, lo más nuevo primero",
    "under way": "en curso",
}
