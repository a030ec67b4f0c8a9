"""Search and its views, in Spanish."""

from __future__ import annotations

from typing import Final

SEARCH: Final[dict[str, str]] = {
    "Look for jobs in all queues, by what is known of them.": (
        "Busque trabajos en todas las colas, por lo que se sepa de ellos."
    ),
    "The history did not answer within a second. Narrow the search, or go on.": (
        "El historial no respondió en un segundo. Acote la búsqueda, o siga."
    ),
    "{jobs} {n|job matches|jobs match} so far; not everything was looked through yet.": (
        "{jobs} {n|trabajo coincide|trabajos coinciden} hasta ahora; todavía no se revisó todo."
    ),
    "{jobs} {n|job matches|jobs match}, and no more.": (
        "{jobs} {n|trabajo coincide|trabajos coinciden}, y ninguno más."
    ),
    "{jobs} more {n|job matches|jobs match}, and these are the last.": (
        "{jobs} {n|trabajo más coincide|trabajos más coinciden}, y no hay otros."
    ),
    "Nothing matches so far; not everything was looked through yet.": (
        "Nada coincide hasta ahora; todavía no se revisó todo."
    ),
    "No job matches. It may have gone with retention.": (
        "Ningún trabajo coincide. Quizá la retención ya lo quitó."
    ),
    "No job matches": "Ningún trabajo coincide",
    "Take a filter away, or look at what has ended: retention removes jobs that have "
    "ended after a while.": (
        "Quite un filtro. Y recuerde: la retención quita al cabo de un tiempo los trabajos "
        "que terminaron."
    ),
    "Save this view…": "Guardar esta vista…",
    "Save this view": "Guardar esta vista",
    "It keeps what is looked for, not what is found.": (
        "Guarda lo que se busca, no lo que se encuentra."
    ),
    "Name": "Nombre",
    "Save for everybody": "Guardar para todos",
    "Save for me": "Guardar para mí",
    "Saved views": "Vistas guardadas",
    "all": "todos",
    "Forget the view {name}": "Olvidar la vista {name}",
    "has": "tiene",
    "Remove {term}": "Quitar {term}",
    "Add a filter": "Agregar un filtro",
    "Narrow by state": "Acotar por estado",
    "Queue {name}": "Cola {name}",
    "{looked} of about {total} jobs looked at": "{looked} de unos {total} trabajos revisados",
    "{looked} jobs looked at": "{looked} trabajos revisados",
    "looked back to {time}": "revisado hasta {time}",
    "{part} looked through": "{part} revisado",
    "Jobs found, live ones first, the newest first in each state": (
        "Trabajos encontrados: primero los vivos, y en cada estado los más nuevos"
    ),
    "State": "Estado",
    "Since": "Desde",
    "What is known": "Qué se sabe",
    "Look on": "Seguir buscando",
    "What are you looking for?": "¿Qué busca?",
    "An id, or a part of a task, a tenant, a queue or an error. Or name it: state:dead "
    "task:send_* error:timeout within:24h.": (
        "Un id, o parte de una tarea, un cliente, una cola o un error. O con nombre: "
        "state:dead task:send_* error:timeout within:24h."
    ),
    "Search these": "Buscar entre estos",
    "on {worker}": "en {worker}",
    "attempt {n}": "intento {n}",
    "due {time}": "vence {time}",
    "past": "pasados",
}
