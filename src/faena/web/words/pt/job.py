"""One job, in Portuguese."""

from __future__ import annotations

from typing import Final

JOB: Final[dict[str, str]] = {
    "Facts": "Dados",
    "Failed attempts": "Tentativas com falha",
    "Handed to": "Entregue a",
    "It should start {time}.": "Deve começar {time}.",
    "Key": "Chave",
    "Log": "Registro",
    "Lost deliveries": "Entregas perdidas",
    "Payload": "Conteúdo",
    "Payloads are veiled for you. An owner can give you the right to see them.": (
        "Você não vê os conteúdos. Um proprietário pode lhe dar essa permissão."
    ),
    "Priority": "Prioridade",
    "Progress": "Progresso",
    "Result": "Resultado",
    "Retry of": "Nova tentativa de",
    "Snoozes": "Adiamentos",
    "What it went through": "Por onde passou",
    "Why it is here": "Por que está aqui",
    "newest first": "o mais novo primeiro",
    "{n} {n|attempt|attempts} used": "{n} {n|tentativa usada|tentativas usadas}",
    "Run now": "Executar agora",
    "The job becomes ready now, before its time.": "O job fica pronto agora, antes da hora.",
    "The job never starts. It can be rerun later.": (
        "O job nunca começa. Pode ser executado de novo depois."
    ),
    "Stop": "Parar",
    "The job is asked to stop; its handler ends it.": (
        "Pede-se ao job que pare; seu código o termina."
    ),
    "Run again": "Executar de novo",
    "The same job runs again, with fresh attempts.": (
        "O mesmo job é executado de novo, com todas as tentativas."
    ),
    "Remove": "Remover",
    "The job and all that is known of it are gone.": "Somem o job e tudo o que se sabe dele.",
    "Enqueued": "Enfileirado",
    "Attempt {number} on {worker}: {error}": "Tentativa {number} em {worker}: {error}",
    "Started on {worker}": "Começou em {worker}",
    "Becomes ready": "Fica pronto",
}
