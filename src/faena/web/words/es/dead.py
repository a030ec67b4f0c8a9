"""Dead letters, in Spanish."""

from __future__ import annotations

from typing import Final

DEAD: Final[dict[str, str]] = {
    "A new job is made for each that died of {error}. The canary goes first; the others "
    "follow when all of it has completed.": (
        "Por cada uno que murió de {error} se crea un trabajo nuevo. El canario va primero; "
        "los demás siguen cuando todo él se completó."
    ),
    "All queues": "Todas las colas",
    "At most": "Como máximo",
    "By error": "Por error",
    "Canary": "Canario",
    "Choose": "Elegir",
    "Choose {job}": "Elegir {job}",
    "Choose a queue to decide about single jobs.": (
        "Elija una cola para decidir sobre trabajos sueltos."
    ),
    "Dead jobs, the newest first": "Trabajos muertos, el más nuevo primero",
    "Died": "Murió",
    "Died last": "Último muerto",
    "Discard the chosen": "Descartar los elegidos",
    "Resolve the chosen": "Resolver los elegidos",
    "Retry the chosen as new jobs": "Reintentar los elegidos como trabajos nuevos",
    "Jobs that run out of attempts come here, with their errors.": (
        "Los trabajos que se quedan sin intentos llegan aquí, con sus errores."
    ),
    "Kinds of errors": "Clases de errores",
    "No dead job matches": "Ningún trabajo muerto coincide",
    "Nothing is dead": "No hay nada muerto",
    "Redrive of {queue}": "Reenvío de {queue}",
    "Redrive {n} dead {n|job|jobs} of {queue}?": (
        "¿Reenviar {n} {n|trabajo muerto|trabajos muertos} de {queue}?"
    ),
    "Redrive {n} {n|job|jobs}": "Reenviar {n} {n|trabajo|trabajos}",
    "Redrive…": "Reenviar…",
    "Stop the redrive": "Detener el reenvío",
    "Stop when more than this many die again": "Detener cuando vuelvan a morir más de",
    "To decide": "Por decidir",
    "canary of {n}": "canario de {n}",
    "most to decide first": "lo más por decidir primero",
    "the oldest died {time}": "el más viejo murió {time}",
    "{moved} retried, {died} died again": "{moved} reintentados, {died} volvieron a morir",
    "{n} not finished": "{n} sin terminar",
    "{pending} to decide, {new} died in the last hour, {due} will be retried automatically": (
        "{pending} por decidir, {new} murieron en la última hora, {due} se reintentarán "
        "automáticamente"
    ),
    "canary": "canario",
    "stopped": "detenido",
    "done": "terminado",
    "failed": "fallido",
}
