"""Bulk actions, and how jobs are chosen for them, in Spanish."""

from __future__ import annotations

from typing import Final

BULK: Final[dict[str, str]] = {
    "Bulk actions": "Acciones masivas",
    "{n} or more": "{n} o más",
    "Which jobs": "Qué trabajos",
    "All that match:": "Todos los que coinciden:",
    "{looked} of about {total} jobs were looked at for this number. The others are "
    "looked at while it runs.": (
        "Para este número se revisaron {looked} de unos {total} trabajos. Los demás se "
        "revisan mientras corre."
    ),
    "Jobs in another state are left alone, and those that come meanwhile may be.": (
        "Los trabajos en otro estado no se tocan; los que lleguen mientras tanto, quizá tampoco."
    ),
    "For the record: others read it beside these jobs.": (
        "Para el registro: otros lo leen junto a estos trabajos."
    ),
    "{verb}: {jobs} {n|job|jobs}": "{verb}: {jobs} {n|trabajo|trabajos}",
    "No job matches that this can be done with.": (
        "No coincide ningún trabajo con el que se pueda hacer esto."
    ),
    "It goes on by itself, also when this page is closed: any worker carries it out.": (
        "Sigue por sí sola, aunque se cierre esta página: la lleva cualquier worker."
    ),
    "It was stopped. What was done stays done; the rest waits until it goes on.": (
        "Se detuvo. Lo hecho queda hecho; el resto espera a que siga."
    ),
    "It is over; {refused} {n|job was|jobs were} left alone.": (
        "Terminó; {refused} {n|trabajo no se tocó|trabajos no se tocaron}."
    ),
    "It is over.": "Terminó.",
    "Begun by {who}, {time}.": "La empezó {who}, {time}.",
    "Go on": "Seguir",
    "How far it is": "Cuánto lleva",
    "looked through": "revisado",
    "Done": "Hechos",
    "Left alone": "Sin tocar",
    "Found, and next": "Encontrados, siguen ahora",
    "Looked at": "Revisados",
    "of about {total}": "de unos {total}",
    "chosen one by one": "elegidos uno por uno",
    "Why jobs were left alone": "Por qué no se tocaron algunos",
    "it is {state}": "está {state}",
    "The first of them": "Los primeros",
    "{number} under way; {n|it goes|they go} on by {n|itself|themselves}.": (
        "{number} en marcha; {n|sigue por sí sola|siguen por sí solas}."
    ),
    "None is under way. They begin where jobs are listed: choose some, or all that match.": (
        "Ninguna en marcha. Empiezan donde se listan trabajos: elija algunos, o todos los "
        "que coinciden."
    ),
    "Bulk actions, those under way first": "Acciones masivas, primero las que están en marcha",
    "Begun": "Empezó",
    "Nothing was done to many jobs yet": "Todavía no se hizo nada con muchos trabajos",
    "Choose all on this page": "Elegir todos los de esta página",
    "Selection": "Selección",
    "None chosen": "Ninguno elegido",
    "1 job chosen": "1 trabajo elegido",
    "# jobs chosen": "# trabajos elegidos",
    "Do with the chosen jobs:": "Con los trabajos elegidos:",
    "all that match, on all pages": "todos los que coinciden, en todas las páginas",
    "Run {jobs} {n|job|jobs} now?": "¿Ejecutar {jobs} {n|trabajo|trabajos} ahora?",
    "Run all {jobs} {n|job|jobs} that match now?": (
        "¿Ejecutar ahora {jobs} {n|trabajo|trabajos}, todos los que coinciden?"
    ),
    "They become ready now, before their time.": "Quedan listos ahora, antes de su hora.",
    "Making jobs ready": "Dejando trabajos listos",
    "Cancel {jobs} {n|job|jobs}?": "¿Cancelar {jobs} {n|trabajo|trabajos}?",
    "Cancel all {jobs} {n|job|jobs} that match?": (
        "¿Cancelar {jobs} {n|trabajo|trabajos}, todos los que coinciden?"
    ),
    "They never start; running ones are asked to stop. They can be rerun later.": (
        "No empiezan nunca; a los que están en curso se les pide parar. Después se pueden "
        "ejecutar de nuevo."
    ),
    "Cancelling jobs": "Cancelando trabajos",
    "Run {jobs} {n|job|jobs} again?": "¿Ejecutar de nuevo {jobs} {n|trabajo|trabajos}?",
    "Run all {jobs} {n|job|jobs} that match again?": (
        "¿Ejecutar de nuevo {jobs} {n|trabajo|trabajos}, todos los que coinciden?"
    ),
    "The same jobs run again, with fresh attempts.": (
        "Los mismos trabajos se ejecutan de nuevo, con intentos nuevos."
    ),
    "Running jobs again": "Ejecutando trabajos de nuevo",
    "Retry as new": "Reintentar como nuevos",
    "Retry {jobs} dead {n|job|jobs} as new?": (
        "¿Reintentar {jobs} {n|trabajo muerto como nuevo|trabajos muertos como nuevos}?"
    ),
    "Retry all {jobs} dead {n|job|jobs} that match as new?": (
        "¿Reintentar como nuevos {jobs} {n|trabajo muerto|trabajos muertos}, todos los que "
        "coinciden?"
    ),
    "A new job is made of each. The dead ones stay, marked as retried.": (
        "De cada uno se crea un trabajo nuevo. Los muertos quedan, marcados como reintentados."
    ),
    "Retrying dead jobs as new": "Reintentando trabajos muertos como nuevos",
    "Resolve": "Resolver",
    "Resolve {jobs} dead {n|job|jobs}?": "¿Resolver {jobs} {n|trabajo muerto|trabajos muertos}?",
    "Resolve all {jobs} dead {n|job|jobs} that match?": (
        "¿Resolver {jobs} {n|trabajo muerto|trabajos muertos}, todos los que coinciden?"
    ),
    "They are marked as settled by hand. Nothing retries them.": (
        "Quedan marcados como arreglados a mano. Nada los reintenta."
    ),
    "Resolving dead jobs": "Resolviendo trabajos muertos",
    "Discard": "Descartar",
    "Discard {jobs} dead {n|job|jobs}?": "¿Descartar {jobs} {n|trabajo muerto|trabajos muertos}?",
    "Discard all {jobs} dead {n|job|jobs} that match?": (
        "¿Descartar {jobs} {n|trabajo muerto|trabajos muertos}, todos los que coinciden?"
    ),
    "They are given up. Nothing retries them.": "Se dan por perdidos. Nada los reintenta.",
    "Discarding dead jobs": "Descartando trabajos muertos",
    "Remove {jobs} {n|job|jobs}?": "¿Quitar {jobs} {n|trabajo|trabajos}?",
    "Remove all {jobs} {n|job|jobs} that match?": (
        "¿Quitar {jobs} {n|trabajo|trabajos}, todos los que coinciden?"
    ),
    "The jobs and all that is known of them are gone.": (
        "Los trabajos y todo lo que se sabe de ellos desaparecen."
    ),
    "Removing jobs": "Quitando trabajos",
    "gone meanwhile": "ya no estaba",
    "ended after this began": "terminó después de que esto empezó",
    "a flow or a group waits for it": "lo espera un flujo o un grupo",
    "its new id is taken": "su id nuevo ya existe",
    "retried already": "ya reintentado",
    "resolved already": "ya resuelto",
    "discarded already": "ya descartado",
    "The bulk action has begun": "La acción masiva empezó",
    "The bulk action is stopped": "La acción masiva se detuvo",
    "The bulk action goes on": "La acción masiva sigue",
    "The view {name} is saved": "La vista {name} quedó guardada",
    "Everybody has the view {name}": "Todos tienen la vista {name}",
    "The view {name} is forgotten": "La vista {name} se olvidó",
}
