"""Queues and their jobs, in Spanish."""

from __future__ import annotations

from typing import Final

QUEUE: Final[dict[str, str]] = {
    "Queues by name": "Colas por nombre",
    "This app declares no queue": "Esta aplicación no declara ninguna cola",
    "{n} {n|queue|queues}": "{n} {n|cola|colas}",
    "{n} {n|shard|shards}": "{n} {n|fragmento|fragmentos}",
    "{n} {n|slot|slots}": "{n} {n|lugar|lugares}",
    "By {who}, {time}.": "Por {who}, {time}.",
    "For how long": "Por cuánto tiempo",
    "Such as 5m or 2h; empty: until it is released.": "Como 5m o 2h; vacío: hasta que se libere.",
    "Held: {reason}": "Retenida: {reason}",
    "Hold {queue}": "Retener {queue}",
    "Hold {queue}?": "¿Retener {queue}?",
    "Hold…": "Retener…",
    "It ends {time}.": "Termina {time}.",
    "It lasts until it is released.": "Dura hasta que se libere.",
    "Its jobs have no tenants.": "Sus trabajos no tienen clientes.",
    "Release {n} {n|job|jobs}": "Liberar {n} {n|trabajo|trabajos}",
    "Tenants with the most jobs": "Clientes con más trabajos",
    "Who waits": "Quién espera",
    "Window": "Ventana",
    "without a tenant": "sin cliente",
    "{jobs} waiting {n|job starts|jobs start} no more until it is released. Running jobs go on.": (
        "{jobs} {n|trabajo en espera no empieza|trabajos en espera no empiezan} hasta que se "
        "libere. Los que están en curso siguen."
    ),
    "Wait": "Espera",
    "Run": "Ejecución",
    "Ended a minute": "Terminados por minuto",
    "Attempts": "Intentos",
    "Jobs by state": "Trabajos por estado",
    "Last error": "Último error",
    "No job is {state}": "Ningún trabajo está {state}",
}
