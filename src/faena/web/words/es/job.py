"""One job, in Spanish."""

from __future__ import annotations

from typing import Final

JOB: Final[dict[str, str]] = {
    "Facts": "Datos",
    "Failed attempts": "Intentos fallidos",
    "Handed to": "Entregado a",
    "It should start {time}.": "Debería empezar {time}.",
    "Key": "Clave",
    "Log": "Registro",
    "Lost deliveries": "Entregas perdidas",
    "Payload": "Contenido",
    "Payloads are veiled for you. An owner can give you the right to see them.": (
        "Usted no ve los contenidos. Un propietario puede darle ese permiso."
    ),
    "Priority": "Prioridad",
    "Progress": "Avance",
    "Result": "Resultado",
    "Retry of": "Reintento de",
    "Snoozes": "Postergaciones",
    "What it went through": "Por lo que pasó",
    "Why it is here": "Por qué está aquí",
    "newest first": "lo más nuevo primero",
    "{n} {n|attempt|attempts} used": "{n} {n|intento usado|intentos usados}",
    "Run now": "Ejecutar ahora",
    "The job becomes ready now, before its time.": (
        "El trabajo queda listo ahora, antes de su hora."
    ),
    "The job never starts. It can be rerun later.": (
        "El trabajo no empieza nunca. Se puede volver a ejecutar después."
    ),
    "Stop": "Detener",
    "The job is asked to stop; its handler ends it.": (
        "Se le pide al trabajo que pare; su código lo termina."
    ),
    "Run again": "Ejecutar de nuevo",
    "The same job runs again, with fresh attempts.": (
        "El mismo trabajo se ejecuta de nuevo, con todos sus intentos."
    ),
    "Remove": "Eliminar",
    "The job and all that is known of it are gone.": (
        "Desaparecen el trabajo y todo lo que se sabe de él."
    ),
    "Enqueued": "Encolado",
    "Attempt {number} on {worker}: {error}": "Intento {number} en {worker}: {error}",
    "Started on {worker}": "Empezó en {worker}",
    "Becomes ready": "Queda listo",
}
