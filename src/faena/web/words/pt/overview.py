"""The overview, in Portuguese."""

from __future__ import annotations

from typing import Final

OVERVIEW: Final[dict[str, str]] = {
    "Attention": "Atenção",
    "Critical": "Crítica",
    "Failed": "Falhas",
    "Healthy": "Saudável",
    "Held": "Retida",
    "Idle": "Ociosa",
    "Needs attention": "Pede atenção",
    "worst first": "o pior primeiro",
    "Oldest": "O mais antigo",
    "Queues, worst first": "Filas, a pior primeiro",
    "Started / min": "Iniciados / min",
    "Started a minute": "Iniciados por minuto",
    "The last hour": "A última hora",
    "Wait p95": "Espera p95",
    "Waiting and running": "Em espera e em execução",
    "Bars grow with the square root of the depth, so that small queues stay visible.": (
        "As barras crescem com a raiz quadrada da profundidade, para que as filas pequenas "
        "continuem visíveis."
    ),
    "All slots are busy": "Todas as vagas estão ocupadas",
    "Dead, to decide": "Mortos, por decidir",
    "Held: {reasons}": "Retida: {reasons}",
    "No worker serves it": "Nenhum worker a atende",
    "Oldest ready": "O pronto mais antigo",
    "The oldest job has waited {time}": "O job mais antigo espera há {time}",
    "in a quarter of an hour": "em um quarto de hora",
    "most in {queue}": "a maioria em {queue}",
    "{held} {held|queue|queues} held, {wanting} {wanting|needs|need} attention, {healthy} "
    "healthy": (
        "{held} {held|fila retida|filas retidas}, {wanting} {wanting|pede|pedem} atenção, "
        "{healthy} {healthy|saudável|saudáveis}"
    ),
    "{n} {n|job waits|jobs wait}, and no worker serves it": (
        "{n} {n|job espera|jobs esperam} e nenhum worker a atende"
    ),
    "{part} of attempts fail": "{part} das tentativas falham",
}
