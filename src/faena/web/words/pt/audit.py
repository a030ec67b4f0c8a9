"""What the audit trail says, in Portuguese."""

from __future__ import annotations

from typing import Final

AUDIT: Final[dict[str, str]] = {
    "Before and after": "Antes e depois",
    "Changes": "Mudanças",
    "Changes, the newest first": "Mudanças, a mais nova primeiro",
    "Filter the trail": "Filtrar o registro",
    "From (UTC)": "De (UTC)",
    "No change matches": "Nenhuma mudança corresponde",
    "None of these matches": "Nenhum destes corresponde",
    "Nothing was changed yet": "Nada foi alterado ainda",
    "Outcome": "Resultado",
    "Show all": "Mostrar tudo",
    "The last: {who}, {time}.": "A última: {who}, {time}.",
    "To (UTC)": "Até (UTC)",
    "What": "O quê",
    "What people and programs change here is recorded, with their names.": (
        "O que pessoas e programas mudam aqui fica registrado, com seus nomes."
    ),
    "When": "Quando",
    "Who": "Quem",
    "Who has changed what here, the newest first.": "Quem mudou o quê aqui, o mais novo primeiro.",
    "link": "link",
    "no": "não",
    "nothing else was told": "nada mais foi informado",
    "proxy": "proxy",
    "refused": "recusado",
    "session": "sessão",
    "token": "token",
    "under way": "em andamento",
    "yes": "sim",
    "{n} changes were looked through.": "Foram vistas {n} mudanças.",
}
