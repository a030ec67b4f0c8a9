"""The ways in, one's own account, and refusals, in Spanish."""

from __future__ import annotations

from typing import Final

DOOR: Final[dict[str, str]] = {
    "Sign in": "Entrar",
    "Sign out": "Salir",
    "User": "Usuario",
    "Password": "Contraseña",
    "No way in? An owner can add you:": "¿No puede entrar? Un propietario puede agregarlo:",
    "Language": "Idioma",
    "Come in": "Entrar",
    "Open the dashboard": "Abrir el panel",
    "This link works once.": "Este enlace sirve una sola vez.",
}
