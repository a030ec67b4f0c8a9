"""The pages of flows and groups, in Portuguese."""

from __future__ import annotations

from typing import Final

FLOW: Final[dict[str, str]] = {
    "being written": "sendo escrito",
    "failed": "falhou",
    "reopened": "reaberto",
    "Jobs that wait for each other, and jobs that are counted together; kept for 7 days "
    "after their end": (
        "Trabalhos que esperam uns pelos outros, e trabalhos contados juntos; guardados "
        "por 7 dias após o fim"
    ),
    "Kind": "Tipo",
    "Groups": "Grupos",
    "Group": "Grupo",
    "Flow": "Fluxo",
    "Under way": "Em andamento",
    "Ended": "Terminados",
    "all queues": "todas as filas",
    "The newest first": "Os mais novos primeiro",
    "Ended nodes": "Nós terminados",
    "Began": "Começou",
    "Members": "Membros",
    "open": "aberto",
    "No flow is under way": "Nenhum fluxo em andamento",
    "No flow has ended lately": "Nenhum fluxo terminou há pouco",
    "No group is under way": "Nenhum grupo em andamento",
    "No group has ended lately": "Nenhum grupo terminou há pouco",
    "waiting": "em espera",
    "in its queue": "na sua fila",
    "skipped": "pulado",
    "It began {time}.": "Começou {time}.",
    "It ended {time}.": "Terminou {time}.",
    "Run again…": "Rodar de novo…",
    "Cancel this flow?": "Cancelar este fluxo?",
    "{n} {n|node has|nodes have} not ended: their jobs are cancelled or asked to stop, and "
    "no more are enqueued. The flow can be run again later.": (
        "{n} {n|nó não terminou|nós não terminaram}: seus trabalhos são cancelados ou "
        "convidados a parar, e não se enfileiram mais. O fluxo pode rodar de novo depois."
    ),
    "Cancel {n} {n|node|nodes}": "Cancelar {n} {n|nó|nós}",
    "Run this flow again?": "Rodar este fluxo de novo?",
    "{n} {n|node that did not complete gets a new job|nodes that did not complete get new "
    "jobs}. Its dead jobs are resolved.": (
        "{n} {n|nó que não se completou recebe um trabalho novo|nós que não se completaram "
        "recebem trabalhos novos}. Seus trabalhos mortos ficam resolvidos."
    ),
    "Run {n} {n|node|nodes} again": "Rodar {n} {n|nó|nós} de novo",
    "Graph": "Gráfico",
    "{ended} of {total} nodes have ended": "{ended} de {total} nós terminaram",
    "The graph; the list below has the same nodes": "O gráfico; a lista abaixo tem os mesmos nós",
    "Nodes of one task that stand beside each other are drawn as one.": (
        "Os nós de uma tarefa que ficam lado a lado são desenhados como um."
    ),
    "{n} {n|node is|nodes are} left out.": "{n} {n|nó ficou|nós ficaram} de fora.",
    "A flow of {n} nodes is too large to draw.": (
        "Um fluxo de {n} nós é grande demais para desenhar."
    ),
    "Nodes": "Nós",
    "Node": "Nó",
    "Comes after": "Vem depois de",
    "{names} did not complete, so {n} {n|node was|nodes were} skipped.": (
        "{names} não se completou, então {n} {n|nó foi pulado|nós foram pulados}."
    ),
    "It waits for {names}.": "Espera por {names}.",
    "All of its nodes have ended.": "Todos os seus nós terminaram.",
    "{left} of {total} nodes have not ended.": "{left} de {total} nós não terminaram.",
    "It takes members still: {n} have ended so far.": (
        "Ainda aceita membros: até agora {n} terminaram."
    ),
    "All of its {n} {n|member has|members have} ended.": (
        "{n|Terminou seu|Terminaram seus} {n} {n|membro|membros}."
    ),
    "{ended} of {total} members have ended.": "{ended} de {total} membros terminaram.",
    "not ended": "sem terminar",
    "Callbacks": "Retornos",
    "when all have completed": "quando todos se completarem",
    "when all have ended": "quando todos terminarem",
    "It has none.": "Não tem.",
    "Flow {flow} is cancelled": "O fluxo {flow} foi cancelado",
    "Flow {flow} runs again": "O fluxo {flow} roda de novo",
}
