"""What the pages of capacity say, in Spanish."""

from __future__ import annotations

from typing import Final

CAPACITY: Final[dict[str, str]] = {
    "5 % of jobs wait longer than {wait}; the objective of {time} needs {n} {n|slot|slots}.": (
        "El 5 % de los trabajos espera más de {wait}; el objetivo de {time} necesita {n} "
        "{n|lugar|lugares}."
    ),
    "Advice for each queue, what wants most first": (
        "Consejo para cada cola, primero la que más necesita"
    ),
    "All limits, in percent of now": "Todos los límites, en porcentaje de los actuales",
    "All {n} queues have slots enough for what comes.": (
        "Las {n} colas tienen lugares suficientes para lo que llega."
    ),
    "Arrivals": "Llegadas",
    "As it is now": "Como está ahora",
    "As it is, and as it would be": "Como es y como sería",
    "At the busiest {rate} came, for which {n} {n|slot|slots} would be right.": (
        "En el momento de más carga llegaron {rate}, para lo que {n} {n|lugar sería|lugares "
        "serían} lo justo."
    ),
    "Capacity of {queue}": "Capacidad de {queue}",
    "Figure": "Cifra",
    "For the objective": "Para el objetivo",
    "In use": "En uso",
    "It is being replayed": "Se está repitiendo",
    "It is being worked out": "Se está calculando",
    "Limits let {limit} begin and {rate} come: more slots would not help.": (
        "Los límites dejan empezar {limit} y llegan {rate}: más lugares no ayudarían."
    ),
    "Move a slider, then replay": "Mueva un control y repita",
    "No attempt has ended in the window: there is nothing to advise from.": (
        "Ningún intento terminó en la ventana: no hay de qué aconsejar."
    ),
    "No number of slots keeps waits below {time}.": (
        "Ninguna cantidad de lugares mantiene la espera por debajo de {time}."
    ),
    "No worker serves it now; this is for one process.": (
        "Ningún worker la atiende ahora; esto vale para un proceso."
    ),
    "None now. Such as 100/min, 10/s.": "Ahora ninguno. Por ejemplo 100/min, 10/s.",
    "Nothing came in the window, or no attempt has ended: nothing to replay.": (
        "No llegó nada en la ventana, o ningún intento terminó: no hay nada que repetir."
    ),
    "Now {limits}; empty: as they are.": "Ahora {limits}; vacío: como están.",
    "Only {n} {n|attempt|attempts} began, too few to advise from: take a longer window.": (
        "Solo {n} {n|intento empezó|intentos empezaron}, muy pocos para aconsejar: elija una "
        "ventana más larga."
    ),
    "Replay {window}": "Repetir {window}",
    "Right": "Lo justo",
    "Run times differ much (p99 {time}): long jobs are better in a queue of their own.": (
        "Las duraciones difieren mucho (p99 {time}): los trabajos largos están mejor en su "
        "propia cola."
    ),
    (
        "Slots are those of all workers together. Right means that 70 % are in use; the "
        "objective is how long 5 % of jobs may wait."
    ): (
        "Los lugares son los de todos los workers juntos. Lo justo es que el 70 % esté en uso; "
        "el objetivo es cuánto puede esperar el 5 % de los trabajos."
    ),
    "Slots now": "Lugares ahora",
    "Slots, by what came": "Lugares, según lo que llegó",
    "The last job would end {time} after the window: this does not keep up.": (
        "El último trabajo terminaría {time} después de la ventana: esto no alcanza."
    ),
    "The line is the objective.": "La línea es el objetivo.",
    "The objective of {time} is met either way.": (
        "El objetivo de {time} se cumple de las dos maneras."
    ),
    "The objective of {time} is not met either way.": (
        "El objetivo de {time} no se cumple de ninguna manera."
    ),
    "The objective of {time} would be met, unlike now.": (
        "El objetivo de {time} se cumpliría, a diferencia de ahora."
    ),
    "The objective of {time} would be missed, unlike now.": (
        "El objetivo de {time} no se cumpliría, a diferencia de ahora."
    ),
    "There is too much to replay at once: choose a shorter window.": (
        "Hay demasiado para repetir de una vez: elija una ventana más corta."
    ),
    "Wait p95 of {tenant}": "Espera p95 de {tenant}",
    "Wait {name}": "Espera {name}",
    "Waits grow without end; the objective of {time} needs {n} {n|slot|slots}.": (
        "La espera crece sin fin; el objetivo de {time} necesita {n} {n|lugar|lugares}."
    ),
    "Weight of {tenant}": "Peso de {tenant}",
    "What came in the window is replayed, as it is and with your change. Nothing is changed.": (
        "Se repite lo que llegó en la ventana, como es y con su cambio. No se cambia nada."
    ),
    "What if": "Qué pasaría si",
    "What would have been": "Qué habría pasado",
    "With {n} {n|slot|slots}, 5 % of jobs would wait longer than {then}, instead of {now}.": (
        "Con {n} {n|lugar|lugares}, el 5 % de los trabajos esperaría más de {then}, en vez de "
        "{now}."
    ),
    "Without limits": "Sin límites",
    "all others": "todos los demás",
    "as it is": "como es",
    "as it would be": "como sería",
    "for the objective {n}": "para el objetivo {n}",
    "of {n}": "de {n}",
    "p95 of waits of what came in each 48th of the window.": (
        "p95 de la espera de lo que llegó en cada 48.ª parte de la ventana."
    ),
    "p95 of waits through the window: up to {now} now, up to {then} then": (
        "p95 de la espera a lo largo de la ventana: hasta {now} ahora, hasta {then} entonces"
    ),
    "what wants most first": "primero lo que más necesita",
    (
        "{jobs} {n|job|jobs} replayed, {exact} at their exact instants, the others spread within "
        "their minutes; workers measured a p95 of {time}."
    ): (
        "{jobs} {n|trabajo repetido|trabajos repetidos}, {exact} en su instante exacto y los "
        "demás repartidos en sus minutos; los workers midieron un p95 de {time}."
    ),
    "{n} jobs so far; this page looks again by itself.": (
        "{n} trabajos hasta ahora; esta página vuelve a mirar sola."
    ),
    "{n} now": "{n} ahora",
    "{n} of {all} queues have been looked at.": "Se miraron {n} de {all} colas.",
    "{n} of {all}: this page looks again by itself": (
        "{n} de {all}: esta página vuelve a mirar sola"
    ),
    "{n} would be right": "{n} sería lo justo",
    "{n} {n|slot is|slots are} right.": "{n} {n|lugar es|lugares son} lo justo.",
    "{n} {n|slot|slots} would be enough: {spare} to spare.": (
        "{n} {n|lugar alcanzaría|lugares alcanzarían}: sobran {spare}."
    ),
    "{n} {n|slot|slots} would be right, {more} more than now.": (
        "{n} {n|lugar sería|lugares serían} lo justo, {more} más que ahora."
    ),
    "{slots} {slots|slot|slots} cannot keep up: {n} would be right.": (
        "{slots} {slots|lugar no alcanza|lugares no alcanzan}: {n} sería lo justo."
    ),
    "{then} of slots would be in use, instead of {now}.": (
        "Estaría en uso el {then} de los lugares, en vez del {now}."
    ),
}
