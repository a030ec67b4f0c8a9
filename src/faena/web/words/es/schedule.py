"""The pages of schedules, in Spanish."""

from __future__ import annotations

from typing import Final

SCHEDULE: Final[dict[str, str]] = {
    "every {time}": "cada {time}",
    "once, at {times}": "una vez, el {times}",
    "by the expression {text}": "según la expresión {text}",
    "from Monday to Friday at {time}": "de lunes a viernes a las {time}",
    "every {days} at {time}": "cada {days} a las {time}",
    "Sunday": "domingo",
    "Monday": "lunes",
    "Tuesday": "martes",
    "Wednesday": "miércoles",
    "Thursday": "jueves",
    "Friday": "viernes",
    "Saturday": "sábado",
    "every day at {time}": "todos los días a las {time}",
    "on the last day of every month at {time}": "el último día de cada mes a las {time}",
    "on day {day} of every month at {time}": "el día {day} de cada mes a las {time}",
    "every minute": "cada minuto",
    "every {n} minutes": "cada {n} minutos",
    "every hour, at minute {minute}": "cada hora, en el minuto {minute}",
    "every {n} hours, at minute {minute}": "cada {n} horas, en el minuto {minute}",
    "paused": "en pausa",
    "not started": "sin empezar",
    "active": "activa",
    "over": "terminada",
    "Paused by {who}, {time}: it fires again when somebody resumes it.": (
        "En pausa por {who}, {time}: vuelve a disparar cuando alguien la reanude."
    ),
    "It is over: no instant is left.": "Terminó: no le queda ningún instante.",
    "It is in code; the first worker that starts begins it.": (
        "Está en el código; la empieza el primer worker que arranque."
    ),
    "The next one is {time}.": "El próximo es {time}.",
    "Remove…": "Quitar…",
    "Edit…": "Editar…",
    "Pause…": "Pausar…",
    "Run now…": "Correr ahora…",
    "Fire again": "Volver a disparar",
    "Run {name} now?": "¿Correr {name} ahora?",
    "One job of {task} is made in {queue}, beside those of its instants.": (
        "Se crea un trabajo de {task} en {queue}, además de los de sus instantes."
    ),
    "Make 1 job": "Crear 1 trabajo",
    "Pause {name}?": "¿Pausar {name}?",
    "It fires no more until it is resumed. Instants that pass meanwhile do not count as missed.": (
        "No dispara más hasta que se reanude. Los instantes que pasen no cuentan como perdidos."
    ),
    "Pause {name}": "Pausar {name}",
    "Remove {name}?": "¿Quitar {name}?",
    "It fires no more. Its jobs stay. This is not undone.": (
        "No dispara más. Sus trabajos quedan. No se deshace."
    ),
    "Remove {name}": "Quitar {name}",
    "Change {name}": "Cambiar {name}",
    "All workers follow at once. What is changed here no longer follows the code, until it "
    "is reset.": (
        "Todos los workers la siguen enseguida. Lo que se cambie aquí deja de seguir al "
        "código hasta que se restablezca."
    ),
    "Change it": "Cambiarla",
    "Cron expression": "Expresión cron",
    "Five fields, or six with seconds first. Fill in one of these three.": (
        "Cinco campos, o seis con segundos al inicio. Complete uno de estos tres."
    ),
    "or an interval": "o un intervalo",
    "or instants": "o instantes",
    "Time zone": "Zona horaria",
    "If its previous job is still live": "Si su trabajo anterior sigue vivo",
    "Missed instants to fire after an outage": "Instantes perdidos que se disparan tras una caída",
    "skip, latest, all, or all(10)": "skip, latest, all o all(10)",
    "Another payload, as JSON": "Otro contenido, en JSON",
    "Empty: as it is.": "Vacío: como está.",
    "Last instants": "Últimos instantes",
    "Instant": "Instante",
    "How it went": "Cómo fue",
    "no job: retention removed it, or the instant was skipped or missed": (
        "sin trabajo: lo quitó la retención, o el instante se omitió o se perdió"
    ),
    "not fired": "no disparado",
    "None has passed since it was created.": "No pasó ninguno desde que se creó.",
    "Next instants": "Próximos instantes",
    "None": "Ninguno",
    "Reset to code": "Volver al código",
    "Reset": "Restablecer",
    "As stored": "Como está guardada",
    "Fired": "Disparos",
    "Begins": "Empieza",
    "Ends": "Termina",
    "If the previous job is live": "Si el trabajo anterior sigue vivo",
    "Missed instants": "Instantes perdidos",
    "Changed: {what}": "Cambiado: {what}",
    "Declared": "Declarada",
    "in code": "en el código",
    "no longer in code": "ya no está en el código",
    "by {who}, {time}": "por {who}, {time}",
    "{paused} of {all} {all|schedule|schedules} paused": (
        "{paused} de {all} {all|programación|programaciones} en pausa"
    ),
    "the next one fires {time}": "la próxima dispara {time}",
    "{n} {n|instant was|instants were} missed so far": (
        "hasta ahora se {n|perdió|perdieron} {n} {n|instante|instantes}"
    ),
    "New schedule…": "Nueva programación…",
    "New schedule": "Nueva programación",
    "It makes a job of the task at each of its instants, from now on.": (
        "Crea un trabajo de la tarea en cada instante, desde ahora."
    ),
    "Name": "Nombre",
    "Payload, as JSON": "Contenido, en JSON",
    "Create it": "Crearla",
    "paused first, then by when they fire": (
        "primero las que están en pausa, luego según cuándo disparan"
    ),
    "Part of a name or queue": "Parte de un nombre o cola",
    "Find": "Buscar",
    "Schedule": "Programación",
    "Last": "Última",
    "{shown} of {all}: name a part of what you look for.": (
        "{shown} de {all}: escriba una parte de lo que busca."
    ),
    "No schedule is here": "Aquí no hay programaciones",
    "A program declares them with app.schedule, or you make one here.": (
        "Un programa las declara con app.schedule, o se crea una aquí."
    ),
    "Schedule {schedule} is there": "La programación {schedule} está creada",
    "Schedule {schedule} is changed": "La programación {schedule} cambió",
    "Schedule {schedule} follows the code again": (
        "La programación {schedule} vuelve a seguir al código"
    ),
    "Schedule {schedule} is paused": "La programación {schedule} está en pausa",
    "Schedule {schedule} fires again": "La programación {schedule} vuelve a disparar",
    "Schedule {schedule} has made a job": "La programación {schedule} creó un trabajo",
    "Schedule {schedule} is removed": "La programación {schedule} se quitó",
}
