"""The pages of flows and groups, in Spanish."""

from __future__ import annotations

from typing import Final

FLOW: Final[dict[str, str]] = {
    "being written": "escribiéndose",
    "failed": "fallido",
    "reopened": "reabierto",
    "Jobs that wait for each other, and jobs that are counted together; kept for 7 days "
    "after their end": (
        "Trabajos que se esperan entre sí, y trabajos que se cuentan juntos; se guardan 7 "
        "días después de su fin"
    ),
    "Kind": "Tipo",
    "Groups": "Grupos",
    "Group": "Grupo",
    "Flow": "Flujo",
    "Under way": "En marcha",
    "Ended": "Terminados",
    "all queues": "todas las colas",
    "The newest first": "Los más nuevos primero",
    "Ended nodes": "Nodos terminados",
    "Began": "Empezó",
    "Members": "Miembros",
    "open": "abierto",
    "No flow is under way": "Ningún flujo está en marcha",
    "No flow has ended lately": "Ningún flujo terminó hace poco",
    "No group is under way": "Ningún grupo está en marcha",
    "No group has ended lately": "Ningún grupo terminó hace poco",
    "waiting": "en espera",
    "in its queue": "en su cola",
    "skipped": "omitido",
    "It began {time}.": "Empezó {time}.",
    "It ended {time}.": "Terminó {time}.",
    "Run again…": "Volver a correr…",
    "Cancel this flow?": "¿Cancelar este flujo?",
    "{n} {n|node has|nodes have} not ended: their jobs are cancelled or asked to stop, and "
    "no more are enqueued. The flow can be run again later.": (
        "{n} {n|nodo no terminó|nodos no terminaron}: sus trabajos se cancelan o se les "
        "pide parar, y no se encolan más. El flujo puede volver a correr después."
    ),
    "Cancel {n} {n|node|nodes}": "Cancelar {n} {n|nodo|nodos}",
    "Run this flow again?": "¿Volver a correr este flujo?",
    "{n} {n|node that did not complete gets a new job|nodes that did not complete get new "
    "jobs}. Its dead jobs are resolved.": (
        "{n} {n|nodo que no se completó recibe un trabajo nuevo|nodos que no se "
        "completaron reciben trabajos nuevos}. Sus trabajos muertos quedan resueltos."
    ),
    "Run {n} {n|node|nodes} again": "Volver a correr {n} {n|nodo|nodos}",
    "Graph": "Gráfico",
    "{ended} of {total} nodes have ended": "{ended} de {total} nodos terminaron",
    "The graph; the list below has the same nodes": (
        "El gráfico; la lista de abajo tiene los mismos nodos"
    ),
    "Nodes of one task that stand beside each other are drawn as one.": (
        "Los nodos de una tarea que están lado a lado se dibujan como uno."
    ),
    "{n} {n|node is|nodes are} left out.": "{n} {n|nodo quedó|nodos quedaron} afuera.",
    "A flow of {n} nodes is too large to draw.": (
        "Un flujo de {n} nodos es demasiado grande para dibujarlo."
    ),
    "Nodes": "Nodos",
    "Node": "Nodo",
    "Comes after": "Va después de",
    "{names} did not complete, so {n} {n|node was|nodes were} skipped.": (
        "{names} no se completó, así que se {n|omitió|omitieron} {n} {n|nodo|nodos}."
    ),
    "It waits for {names}.": "Espera a {names}.",
    "All of its nodes have ended.": "Todos sus nodos terminaron.",
    "{left} of {total} nodes have not ended.": "{left} de {total} nodos no terminaron.",
    "It takes members still: {n} have ended so far.": (
        "Todavía admite miembros: hasta ahora terminaron {n}."
    ),
    "All of its {n} {n|member has|members have} ended.": (
        "{n|Terminó su|Terminaron sus} {n} {n|miembro|miembros}."
    ),
    "{ended} of {total} members have ended.": "{ended} de {total} miembros terminaron.",
    "not ended": "sin terminar",
    "Callbacks": "Llamadas de vuelta",
    "when all have completed": "cuando todos se completen",
    "when all have ended": "cuando todos terminen",
    "It has none.": "No tiene.",
    "Flow {flow} is cancelled": "El flujo {flow} quedó cancelado",
    "Flow {flow} runs again": "El flujo {flow} vuelve a correr",
}
