"""What several pages of services, workers, alerts and costs say, in Portuguese."""

from __future__ import annotations

from typing import Final

RUN: Final[dict[str, str]] = {
    "Forget…": "Esquecer…",
    "It lasts until somebody ends it.": "Dura até que alguém o encerre.",
    "Left": "Resta",
    "Since": "Desde",
    "State": "Estado",
    "Such as 30m or 2h; empty: until somebody ends it.": (
        "Por exemplo 30m ou 2h; vazio: até que alguém o encerre."
    ),
    "Used": "Usado",
    "and {n} more": "e mais {n}",
    "ends {time}": "termina {time}",
    "longest first": "os mais longos primeiro",
    "on": "ativo",
    "off": "inativo",
    "{n} more {n|needs|need} attention.": "Mais {n} {n|precisa|precisam} de atenção.",
    "healthy": "em ordem",
    "degraded": "limitado",
    "offline": "fora do ar",
    "critical": "crítico",
}
