"""What the pages of workers say, in Spanish."""

from __future__ import annotations

from typing import Final

WORKER: Final[dict[str, str]] = {
    "All workers": "Todos los workers",
    "By queues served": "Por colas atendidas",
    "Host": "Equipo",
    "Hosts": "Equipos",
    "It calls as it should, and runs no job.": "Responde como debe y no ejecuta ningún trabajo.",
    "It calls as it should, and runs {n} {n|job|jobs}.": (
        "Responde como debe y ejecuta {n} {n|trabajo|trabajos}."
    ),
    (
        "It has not called for {time}. It counts as gone {when}; others take over its jobs when "
        "the leases are over."
    ): (
        "No responde desde hace {time}. Se lo da por ido {when}; otros toman sus trabajos cuando "
        "vencen los plazos."
    ),
    "No running job of its queues is its own.": "Ningún trabajo en curso de sus colas es suyo.",
    "No worker matches.": "Ningún worker coincide.",
    "No worker runs": "No hay workers",
    "No worker runs, and no job waits.": "No hay workers, y ningún trabajo espera.",
    "Pool or queues": "Grupo o colas",
    "Process": "Proceso",
    "Processes": "Procesos",
    "Queues without a worker": "Colas sin worker",
    "Running for": "En curso hace",
    "Running jobs of this worker": "Trabajos en curso de este worker",
    "Silent": "En silencio",
    (
        "Slots are those of all queues; a queue that several pools serve counts its running jobs "
        "in each."
    ): (
        "Los lugares son los de todas las colas; una cola que atienden varios grupos cuenta sus "
        "trabajos en curso en cada uno."
    ),
    "Slots in use": "Lugares en uso",
    "Start one with": "Inicie uno con",
    "The first running jobs of its queues were looked through: it may run more.": (
        "Se revisaron los primeros trabajos en curso de sus colas: puede ejecutar más."
    ),
    "Up": "Activo hace",
    "Version": "Versión",
    "Versions": "Versiones",
    "What it runs": "Qué ejecuta",
    "Workers that serve the same queues": "Workers que atienden las mismas colas",
    "Workers, silent ones first": "Workers, primero los que no responden",
    "no call for {time}; gone {when}": "sin responder hace {time}; se lo da por ido {when}",
    "of {n} declared": "de {n} declarados",
    "process {pid}": "proceso {pid}",
    "silent ones first": "primero los que no responden",
    "{n} versions run side by side.": "Conviven {n} versiones.",
    "{n} {n|job is|jobs are} ready.": "{n} {n|trabajo está listo|trabajos están listos}.",
    (
        "{n} {n|queue has|queues have} no worker while {jobs} {m|job waits|jobs wait}: they "
        "start when a worker does."
    ): (
        "{n} {n|cola no tiene|colas no tienen} worker y {jobs} {m|trabajo espera|trabajos "
        "esperan}: empiezan cuando arranque uno."
    ),
    "{n} {n|was|were} running: the next worker takes {n|it|them} over.": (
        "{n} {n|estaba|estaban} en curso: el próximo worker {n|lo|los} toma."
    ),
    (
        "{n} {n|worker has|workers have} not called for {time}: others take over {n|its|their} "
        "jobs when the leases are over."
    ): (
        "{n} {n|worker no responde|workers no responden} desde hace {time}: otros toman sus "
        "trabajos cuando vencen los plazos."
    ),
    "{n} {n|worker|workers}": "{n} {n|worker|workers}",
    "{n} {n|worker|workers} on {m} {m|host|hosts}; all of them call as they should.": (
        "{n} {n|worker|workers} en {m} {m|equipo|equipos}, y todos responden como deben."
    ),
}
