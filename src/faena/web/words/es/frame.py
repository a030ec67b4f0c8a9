"""What is limited, what was just done, and how to take it back, in Spanish."""

from __future__ import annotations

from typing import Final

FRAME: Final[dict[str, str]] = {
    "{feature} has been degraded since {time}.": "{feature} está limitado desde {time}.",
    "{feature} has been offline since {time}.": "{feature} no funciona desde {time}.",
    "{feature} is degraded.": "{feature} está limitado.",
    "{feature} is offline.": "{feature} no funciona.",
    "Also limited: {names}.": "También con límites: {names}.",
    "{n} {n|feature|features}": "{n} {n|función|funciones}",
    "Done": "Listo",
    "Undo": "Deshacer",
    "Close": "Cerrar",
    "{queue} is held: {reason}": "{queue} quedó retenida: {reason}",
    "{queue} is released: {reason}": "{queue} quedó liberada: {reason}",
}
