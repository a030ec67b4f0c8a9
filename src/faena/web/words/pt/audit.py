"""The audit trail, in Portuguese."""

from __future__ import annotations

from typing import Final

AUDIT: Final[dict[str, str]] = {
    "After": "Depois",
    "Before": "Antes",
    "Changes": "Mudanças",
    "Nothing was changed yet": "Nada foi mudado ainda",
    "Outcome": "Resultado",
    "What": "O quê",
    "What people and programs change here is recorded, with their names.": (
        "O que pessoas e programas mudam aqui fica registrado, com seus nomes."
    ),
    "When": "Quando",
    "Who": "Quem",
    "Who has changed what here, the newest first": "Quem mudou o quê aqui, o mais novo primeiro",
    "under way": "em andamento",
}
