"""Search and its views, in Portuguese."""

from __future__ import annotations

from typing import Final

SEARCH: Final[dict[str, str]] = {
    "Look for jobs in all queues, by what is known of them.": (
        "Procure jobs em todas as filas, pelo que se sabe deles."
    ),
    "The history did not answer within a second. Narrow the search, or go on.": (
        "O histórico não respondeu em um segundo. Restrinja a busca, ou continue."
    ),
    "{jobs} {n|job matches|jobs match} so far; not everything was looked through yet.": (
        "{jobs} {n|job corresponde|jobs correspondem} até agora; ainda não se olhou tudo."
    ),
    "{jobs} {n|job matches|jobs match}, and no more.": (
        "{jobs} {n|job corresponde|jobs correspondem}, e nenhum mais."
    ),
    "{jobs} more {n|job matches|jobs match}, and these are the last.": (
        "Mais {jobs} {n|job corresponde|jobs correspondem}, e não há outros."
    ),
    "Nothing matches so far; not everything was looked through yet.": (
        "Nada corresponde até agora; ainda não se olhou tudo."
    ),
    "No job matches. It may have gone with retention.": (
        "Nenhum job corresponde. Talvez a retenção já o tenha removido."
    ),
    "No job matches": "Nenhum job corresponde",
    "Take a filter away, or look at what has ended: retention removes jobs that have "
    "ended after a while.": (
        "Tire um filtro. E lembre-se: a retenção remove depois de um tempo os jobs que terminaram."
    ),
    "Save this view…": "Salvar esta vista…",
    "Save this view": "Salvar esta vista",
    "It keeps what is looked for, not what is found.": (
        "Guarda o que se procura, não o que se encontra."
    ),
    "Name": "Nome",
    "Save for everybody": "Salvar para todos",
    "Save for me": "Salvar para mim",
    "Saved views": "Vistas salvas",
    "all": "todos",
    "Forget the view {name}": "Esquecer a vista {name}",
    "has": "tem",
    "Remove {term}": "Tirar {term}",
    "Add a filter": "Adicionar um filtro",
    "Narrow by state": "Restringir por estado",
    "Queue {name}": "Fila {name}",
    "{looked} of about {total} jobs looked at": "{looked} de cerca de {total} jobs olhados",
    "{looked} jobs looked at": "{looked} jobs olhados",
    "looked back to {time}": "olhado até {time}",
    "{part} looked through": "{part} olhado",
    "Jobs found, live ones first, the newest first in each state": (
        "Jobs encontrados: primeiro os vivos, e em cada estado os mais novos"
    ),
    "State": "Estado",
    "Since": "Desde",
    "What is known": "O que se sabe",
    "Look on": "Continuar a busca",
    "What are you looking for?": "O que você procura?",
    "An id, or a part of a task, a tenant, a queue or an error. Or name it: state:dead "
    "task:send_* error:timeout within:24h.": (
        "Um id, ou parte de uma tarefa, um cliente, uma fila ou um erro. Ou com nome: "
        "state:dead task:send_* error:timeout within:24h."
    ),
    "Search these": "Buscar entre estes",
    "on {worker}": "em {worker}",
    "attempt {n}": "tentativa {n}",
    "due {time}": "vence {time}",
    "past": "passados",
}
