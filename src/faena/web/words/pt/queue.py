"""Queues and their jobs, in Portuguese."""

from __future__ import annotations

from typing import Final

QUEUE: Final[dict[str, str]] = {
    "Queues by name": "Filas por nome",
    "This app declares no queue": "Este aplicativo não declara nenhuma fila",
    "{n} {n|queue|queues}": "{n} {n|fila|filas}",
    "{n} {n|shard|shards}": "{n} {n|fragmento|fragmentos}",
    "{n} {n|slot|slots}": "{n} {n|vaga|vagas}",
    "By {who}, {time}.": "Por {who}, {time}.",
    "For how long": "Por quanto tempo",
    "Such as 5m or 2h; empty: until it is released.": "Como 5m ou 2h; vazio: até ser liberada.",
    "Held: {reason}": "Retida: {reason}",
    "Hold {queue}": "Reter {queue}",
    "Hold {queue}?": "Reter {queue}?",
    "Hold…": "Reter…",
    "It ends {time}.": "Termina {time}.",
    "It lasts until it is released.": "Dura até ser liberada.",
    "Its jobs have no tenants.": "Seus jobs não têm clientes.",
    "Release {n} {n|job|jobs}": "Liberar {n} {n|job|jobs}",
    "Tenants with the most jobs": "Clientes com mais jobs",
    "Who waits": "Quem espera",
    "Window": "Janela",
    "without a tenant": "sem cliente",
    "{jobs} waiting {n|job starts|jobs start} no more until it is released. Running jobs go on.": (
        "{jobs} {n|job em espera não começa|jobs em espera não começam} até ser liberada. Os "
        "que estão em execução continuam."
    ),
    "Wait": "Espera",
    "Run": "Execução",
    "Ended a minute": "Terminados por minuto",
    "Attempts": "Tentativas",
    "Jobs by state": "Jobs por estado",
    "Last error": "Último erro",
    "No job is {state}": "Nenhum job está {state}",
}
