"""What several pages of services, workers, alerts and costs say, in Spanish."""

from __future__ import annotations

from typing import Final

RUN: Final[dict[str, str]] = {
    "Forget…": "Olvidar…",
    "It lasts until somebody ends it.": "Dura hasta que alguien lo termine.",
    "Left": "Queda",
    "Since": "Desde",
    "State": "Estado",
    "Such as 30m or 2h; empty: until somebody ends it.": (
        "Por ejemplo 30m o 2h; vacío: hasta que alguien lo termine."
    ),
    "Used": "Usado",
    "and {n} more": "y {n} más",
    "ends {time}": "termina {time}",
    "longest first": "primero los más largos",
    "on": "activo",
    "off": "inactivo",
    "{n} more {n|needs|need} attention.": "{n} más {n|necesita|necesitan} atención.",
    "healthy": "en orden",
    "degraded": "limitado",
    "offline": "sin servicio",
    "critical": "crítico",
}
