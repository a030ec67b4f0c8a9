"""What the pages of workers say, in Portuguese."""

from __future__ import annotations

from typing import Final

WORKER: Final[dict[str, str]] = {
    "All workers": "Todos os workers",
    "By queues served": "Por filas atendidas",
    "Host": "Servidor",
    "Hosts": "Servidores",
    "It calls as it should, and runs no job.": "Responde como deve e não executa nenhum job.",
    "It calls as it should, and runs {n} {n|job|jobs}.": (
        "Responde como deve e executa {n} {n|job|jobs}."
    ),
    (
        "It has not called for {time}. It counts as gone {when}; others take over its jobs when "
        "the leases are over."
    ): (
        "Não responde há {time}. É dado como perdido {when}; outros assumem seus jobs quando os "
        "prazos vencem."
    ),
    "No running job of its queues is its own.": "Nenhum job em execução de suas filas é dele.",
    "No worker matches.": "Nenhum worker corresponde.",
    "No worker runs": "Nenhum worker em execução",
    "No worker runs, and no job waits.": "Nenhum worker em execução, e nenhum job espera.",
    "Pool or queues": "Grupo ou filas",
    "Process": "Processo",
    "Processes": "Processos",
    "Queues without a worker": "Filas sem worker",
    "Running for": "Executando há",
    "Running jobs of this worker": "Jobs em execução deste worker",
    "Silent": "Em silêncio",
    (
        "Slots are those of all queues; a queue that several pools serve counts its running jobs "
        "in each."
    ): (
        "As vagas são as de todas as filas; uma fila atendida por vários grupos conta seus jobs "
        "em execução em cada um."
    ),
    "Slots in use": "Vagas em uso",
    "Start one with": "Inicie um com",
    "The first running jobs of its queues were looked through: it may run more.": (
        "Foram vistos os primeiros jobs em execução de suas filas: pode executar mais."
    ),
    "Up": "Ativo há",
    "Version": "Versão",
    "Versions": "Versões",
    "What it runs": "O que executa",
    "Workers that serve the same queues": "Workers que atendem as mesmas filas",
    "Workers, silent ones first": "Workers, primeiro os que não respondem",
    "no call for {time}; gone {when}": "sem responder há {time}; dado como perdido {when}",
    "of {n} declared": "de {n} declarados",
    "process {pid}": "processo {pid}",
    "silent ones first": "primeiro os que não respondem",
    "{n} versions run side by side.": "{n} versões convivem.",
    "{n} {n|job is|jobs are} ready.": "{n} {n|job está pronto|jobs estão prontos}.",
    (
        "{n} {n|queue has|queues have} no worker while {jobs} {m|job waits|jobs wait}: they "
        "start when a worker does."
    ): (
        "{n} {n|fila não tem|filas não têm} worker e {jobs} {m|job espera|jobs esperam}: começam "
        "quando um iniciar."
    ),
    "{n} {n|was|were} running: the next worker takes {n|it|them} over.": (
        "{n} {n|estava|estavam} em execução: o próximo worker {n|o|os} assume."
    ),
    (
        "{n} {n|worker has|workers have} not called for {time}: others take over {n|its|their} "
        "jobs when the leases are over."
    ): (
        "{n} {n|worker não responde|workers não respondem} há {time}: outros assumem seus jobs "
        "quando os prazos vencem."
    ),
    "{n} {n|worker|workers}": "{n} {n|worker|workers}",
    "{n} {n|worker|workers} on {m} {m|host|hosts}; all of them call as they should.": (
        "{n} {n|worker|workers} em {m} {m|servidor|servidores}, e todos respondem como devem."
    ),
}
