"""What is limited, what was just done, and how to take it back, in Portuguese."""

from __future__ import annotations

from typing import Final

FRAME: Final[dict[str, str]] = {
    "{feature} has been degraded since {time}.": "{feature} está limitado desde {time}.",
    "{feature} has been offline since {time}.": "{feature} não funciona desde {time}.",
    "{feature} is degraded.": "{feature} está limitado.",
    "{feature} is offline.": "{feature} não funciona.",
    "Also limited: {names}.": "Também limitado: {names}.",
    "{n} {n|feature|features}": "{n} {n|recurso|recursos}",
    "Done": "Pronto",
    "Undo": "Desfazer",
    "Close": "Fechar",
    "{queue} is held: {reason}": "{queue} está retida: {reason}",
    "{queue} is released: {reason}": "{queue} foi liberada: {reason}",
}
