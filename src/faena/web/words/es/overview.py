"""The overview, in Spanish."""

from __future__ import annotations

from typing import Final

OVERVIEW: Final[dict[str, str]] = {
    "Attention": "Atención",
    "Critical": "Crítica",
    "Failed": "Fallidos",
    "Healthy": "Sana",
    "Held": "Retenida",
    "Idle": "Inactiva",
    "Needs attention": "Pide atención",
    "worst first": "lo peor primero",
    "Oldest": "El más viejo",
    "Queues, worst first": "Colas, la peor primero",
    "Started / min": "Iniciados / min",
    "Started a minute": "Iniciados por minuto",
    "The last hour": "La última hora",
    "Wait p95": "Espera p95",
    "Waiting and running": "En espera y en curso",
    "Bars grow with the square root of the depth, so that small queues stay visible.": (
        "Las barras crecen con la raíz cuadrada de la profundidad, para que las colas "
        "pequeñas se sigan viendo."
    ),
    "All slots are busy": "Todos los lugares están ocupados",
    "Dead, to decide": "Muertos, por decidir",
    "Held: {reasons}": "Retenida: {reasons}",
    "No worker serves it": "Ningún worker la atiende",
    "Oldest ready": "El listo más viejo",
    "The oldest job has waited {time}": "El trabajo más viejo espera hace {time}",
    "in a quarter of an hour": "en un cuarto de hora",
    "most in {queue}": "la mayoría en {queue}",
    "{held} {held|queue|queues} held, {wanting} {wanting|needs|need} attention, {healthy} "
    "healthy": (
        "{held} {held|cola retenida|colas retenidas}, {wanting} {wanting|pide|piden} "
        "atención, {healthy} {healthy|sana|sanas}"
    ),
    "{n} {n|job waits|jobs wait}, and no worker serves it": (
        "{n} {n|trabajo espera|trabajos esperan} y ningún worker la atiende"
    ),
    "{part} of attempts fail": "falla el {part} de los intentos",
}
