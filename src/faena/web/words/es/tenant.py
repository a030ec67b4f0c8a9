"""The pages of tenants, in Spanish."""

from __future__ import annotations

from typing import Final

TENANT: Final[dict[str, str]] = {
    "Start": "Inicio",
    "At a glance": "De un vistazo",
    "{left} of {most} running are free": "{left} de {most} en curso están libres",
    "room for {left} more jobs, of {most}": "lugar para {left} trabajos más, de {most}",
    "{limit}: used up": "{limit}: agotado",
    "{limit}: has room": "{limit}: con margen",
    "Held in {queues} until somebody releases it.": (
        "Retenido en {queues} hasta que alguien lo libere."
    ),
    "Held in {queues}: the last hold ends {time}.": (
        "Retenido en {queues}: la última retención termina {time}."
    ),
    "It waits for limits of its own. {words}": "Espera por sus propios límites. {words}",
    "Nothing of its own keeps its jobs: they wait for their turn or their time.": (
        "Nada propio frena sus trabajos: esperan su turno o su hora."
    ),
    "None of its jobs waits.": "Ninguno de sus trabajos espera.",
    "{held} {held|tenant is|tenants are} held, {throttled} {throttled|waits|wait} for "
    "limits of their own; {busy} of {all} have work": (
        "{held} {held|cliente retenido|clientes retenidos}, {throttled} "
        "{throttled|espera|esperan} por límites propios; {busy} de {all} tienen trabajo"
    ),
    "{number} {n|tenant|tenants}": "{number} {n|cliente|clientes}",
    "more workers would not help": "más workers no ayudarían",
    "more slots would help": "más lugares ayudarían",
    "of 1 (Jain)": "de 1 (Jain)",
    "{number} others": "{number} más",
    "weight {number}": "peso {number}",
    "no limits": "sin límites",
    "{n} running": "{n} en curso",
    "at most {n} jobs": "como máximo {n} trabajos",
    "own shard": "fragmento propio",
    "Held by somebody": "Retenidos por alguien",
    "Wait for limits of their own": "Esperan por límites propios",
    "Wait for their turn": "Esperan su turno",
    "Fairness": "Equidad",
    "This minute": "Este minuto",
    "15 min": "15 min",
    "Busiest": "Con más trabajo",
    "Longest wait": "Mayor espera",
    "Throttled": "Frenados",
    "Decided for": "Con decisiones",
    "By name": "Por nombre",
    "Dead letters of {tenant}": "Cartas muertas de {tenant}",
    "Jobs that ran out of attempts, with what they died of": (
        "Trabajos que agotaron sus intentos, y de qué murieron"
    ),
    "Decide about them": "Decidir sobre ellas",
    "Go on": "Seguir",
    "Pages of this tenant": "Páginas de este cliente",
    "Jobs of {tenant}": "Trabajos de {tenant}",
    "Show": "Mostrar",
    "No {state} job of it here": "Aquí no tiene trabajos: {state}",
    "{n} jobs of this state were looked through.": "Se revisaron {n} trabajos de este estado.",
    "Cancel…": "Cancelar…",
    "Settings…": "Ajustes…",
    "Where": "Dónde",
    "in all queues": "en todas las colas",
    "Hold {tenant}?": "¿Retener a {tenant}?",
    "{jobs} ready {n|job starts|jobs start} no more until it is released. Running jobs go "
    "on, new ones are accepted.": (
        "{jobs} {n|trabajo listo no empieza|trabajos listos no empiezan} hasta que se "
        "libere. Los que están en curso siguen y se aceptan nuevos."
    ),
    "Hold {n} ready {n|job|jobs}": "Retener {n} {n|trabajo listo|trabajos listos}",
    "Cancel ready jobs of {tenant}?": "¿Cancelar los trabajos listos de {tenant}?",
    "{jobs} ready {n|job|jobs} will not run, at most 500 of each queue at once. Jobs that "
    "run or are delayed stay. This is not undone; cancelled jobs can be run again one by "
    "one.": (
        "{jobs} {n|trabajo listo no correrá|trabajos listos no correrán}, como máximo 500 "
        "por cola a la vez. Los que están en curso o diferidos quedan. No se deshace; los "
        "cancelados pueden volver a correr uno por uno."
    ),
    "Cancel {n} {n|job|jobs}": "Cancelar {n} {n|trabajo|trabajos}",
    "They replace those of the queue for this tenant, from the next job on. `queue`: as "
    "the queue says.": (
        "Reemplazan los de la cola para este cliente, desde el próximo trabajo. `queue`: "
        "como diga la cola."
    ),
    "Change the settings": "Cambiar los ajustes",
    "Such as 5/s, 100/min; none: no limits.": "Como 5/s, 100/min; none: sin límites.",
    "Running at most": "En curso como máximo",
    "Weight": "Peso",
    "Twice the weight has twice the turns; others have 1.": (
        "El doble de peso tiene el doble de turnos; los demás tienen 1."
    ),
    "Waiting and running at most": "En espera y en curso como máximo",
    "Such as 1h; empty: until they are changed.": "Como 1h; vacío: hasta que se cambien.",
    "Settings of {tenant} in all queues": "Ajustes de {tenant} en todas las colas",
    "Held in {queue}: {reason}": "Retenido en {queue}: {reason}",
    "{n} ready": "{n} listos",
    "Running": "En curso",
    "Wait, mean": "Espera media",
    "of this minute": "de este minuto",
    "of the last two minutes": "de los últimos dos minutos",
    "Share of starts": "Parte de los inicios",
    "Cost this month": "Costo del mes",
    "where it waits most first": "primero donde más espera",
    "The tenant in each queue": "El cliente en cada cola",
    "Kept back by": "Frenado por",
    "Limits and what is left": "Límites y lo que queda",
    "Decided for it": "Decidido para él",
    "Settings end {time}.": "Los ajustes terminan {time}.",
    "still moving": "todavía se mueve",
    "Return…": "Devolver…",
    "Own shard…": "Fragmento propio…",
    "It has no jobs that wait or run": "No tiene trabajos en espera ni en curso",
    "Nothing is decided for it either.": "Tampoco hay nada decidido para él.",
    "Settings of {tenant} in {queue}": "Ajustes de {tenant} en {queue}",
    "Return {tenant} to the shared shards of {queue}?": (
        "¿Devolver a {tenant} a los fragmentos compartidos de {queue}?"
    ),
    "{jobs} waiting {n|job moves|jobs move} back in order.": (
        "{jobs} {n|trabajo en espera vuelve|trabajos en espera vuelven} en orden."
    ),
    "Return {tenant}": "Devolver a {tenant}",
    "Give {tenant} a shard of its own in {queue}?": (
        "¿Dar a {tenant} un fragmento propio en {queue}?"
    ),
    "{jobs} waiting {n|job moves|jobs move} there in order. Every worker of the queue gets "
    "slots for it beside those of others.": (
        "{jobs} {n|trabajo en espera se muda|trabajos en espera se mudan} allí en orden. "
        "Cada worker de la cola le da lugares aparte de los demás."
    ),
    "Give it a shard": "Darle un fragmento",
    "All": "Todas",
    "None of its jobs waits for a decision.": "Ninguno de sus trabajos espera una decisión.",
    "a day": "por día",
    "a month": "por mes",
    "{spent} of {amount} spent, {left} left": "{spent} de {amount} gastados, quedan {left}",
    "No upstream has a budget for each tenant.": (
        "Ningún proveedor tiene un presupuesto por cliente."
    ),
    "Who was given the starts": "A quién se dieron los inicios",
    "by weight, over all queues": "según el peso, en todas las colas",
    "No job with a tenant was started.": "No empezó ningún trabajo con cliente.",
    "Part of a name": "Parte de un nombre",
    "All tenants": "Todos los clientes",
    "Pages": "Páginas",
    "{shown} of {all}": "{shown} de {all}",
    "First page": "Primera página",
    "No tenant with work has this in its name": (
        "Ningún cliente con trabajo tiene esto en su nombre"
    ),
    "No tenant is here": "Aquí no hay clientes",
    "Tenants are shown while they have jobs that wait or run, and while something is "
    "decided for them.": (
        "Los clientes se muestran mientras tienen trabajos en espera o en curso, y "
        "mientras hay algo decidido para ellos."
    ),
    "Open {name}": "Abrir {name}",
    "{tenant} is held: {reason}": "{tenant} quedó retenido: {reason}",
    "{tenant} is released": "{tenant} quedó liberado",
    "The settings of {tenant} are changed": "Los ajustes de {tenant} cambiaron",
    "{tenant} has the settings of its queues again": (
        "{tenant} vuelve a tener los ajustes de sus colas"
    ),
    "{tenant} gets a shard of its own": "{tenant} pasa a un fragmento propio",
    "{tenant} returns to the shared shards": "{tenant} vuelve a los fragmentos compartidos",
    "Ready jobs of {tenant} are cancelled": "Se cancelaron trabajos listos de {tenant}",
}
