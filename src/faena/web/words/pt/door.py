"""The ways in, one's own account, and refusals, in Portuguese."""

from __future__ import annotations

from typing import Final

DOOR: Final[dict[str, str]] = {
    "Sign in": "Entrar",
    "Sign out": "Sair",
    "User": "Usuário",
    "Password": "Senha",
    "No way in? An owner can add you:": "Não consegue entrar? Um proprietário pode adicioná-lo:",
    "Language": "Idioma",
    "Come in": "Entrar",
    "Open the dashboard": "Abrir o painel",
    "This link works once.": "Este link só funciona uma vez.",
}
