"""The pages of schedules, in Portuguese."""

from __future__ import annotations

from typing import Final

SCHEDULE: Final[dict[str, str]] = {
    "every {time}": "a cada {time}",
    "once, at {times}": "uma vez, em {times}",
    "by the expression {text}": "pela expressão {text}",
    "from Monday to Friday at {time}": "de segunda a sexta às {time}",
    "every {days} at {time}": "toda {days} às {time}",
    "Sunday": "domingo",
    "Monday": "segunda-feira",
    "Tuesday": "terça-feira",
    "Wednesday": "quarta-feira",
    "Thursday": "quinta-feira",
    "Friday": "sexta-feira",
    "Saturday": "sábado",
    "every day at {time}": "todos os dias às {time}",
    "on the last day of every month at {time}": "no último dia de cada mês às {time}",
    "on day {day} of every month at {time}": "no dia {day} de cada mês às {time}",
    "every minute": "a cada minuto",
    "every {n} minutes": "a cada {n} minutos",
    "every hour, at minute {minute}": "a cada hora, no minuto {minute}",
    "every {n} hours, at minute {minute}": "a cada {n} horas, no minuto {minute}",
    "paused": "em pausa",
    "not started": "não iniciada",
    "active": "ativa",
    "over": "terminada",
    "Paused by {who}, {time}: it fires again when somebody resumes it.": (
        "Em pausa por {who}, {time}: volta a disparar quando alguém a retomar."
    ),
    "It is over: no instant is left.": "Terminou: não resta nenhum instante.",
    "It is in code; the first worker that starts begins it.": (
        "Está no código; o primeiro worker que iniciar a começa."
    ),
    "The next one is {time}.": "O próximo é {time}.",
    "Remove…": "Remover…",
    "Edit…": "Editar…",
    "Pause…": "Pausar…",
    "Run now…": "Rodar agora…",
    "Fire again": "Disparar de novo",
    "Run {name} now?": "Rodar {name} agora?",
    "One job of {task} is made in {queue}, beside those of its instants.": (
        "Cria-se um trabalho de {task} em {queue}, além dos de seus instantes."
    ),
    "Make 1 job": "Criar 1 trabalho",
    "Pause {name}?": "Pausar {name}?",
    "It fires no more until it is resumed. Instants that pass meanwhile do not count as missed.": (
        "Não dispara mais até ser retomada. Os instantes que passarem não contam como perdidos."
    ),
    "Pause {name}": "Pausar {name}",
    "Remove {name}?": "Remover {name}?",
    "It fires no more. Its jobs stay. This is not undone.": (
        "Não dispara mais. Seus trabalhos ficam. Não se desfaz."
    ),
    "Remove {name}": "Remover {name}",
    "Change {name}": "Mudar {name}",
    "All workers follow at once. What is changed here no longer follows the code, until it "
    "is reset.": (
        "Todos os workers a seguem na hora. O que se muda aqui deixa de seguir o código "
        "até ser restaurado."
    ),
    "Change it": "Mudar",
    "Cron expression": "Expressão cron",
    "Five fields, or six with seconds first. Fill in one of these three.": (
        "Cinco campos, ou seis com segundos no início. Preencha um destes três."
    ),
    "or an interval": "ou um intervalo",
    "or instants": "ou instantes",
    "Time zone": "Fuso horário",
    "If its previous job is still live": "Se o trabalho anterior ainda está vivo",
    "Missed instants to fire after an outage": "Instantes perdidos a disparar após uma queda",
    "skip, latest, all, or all(10)": "skip, latest, all ou all(10)",
    "Another payload, as JSON": "Outro conteúdo, em JSON",
    "Empty: as it is.": "Vazio: como está.",
    "Last instants": "Últimos instantes",
    "Instant": "Instante",
    "How it went": "Como foi",
    "no job: retention removed it, or the instant was skipped or missed": (
        "sem trabalho: a retenção o removeu, ou o instante foi pulado ou perdido"
    ),
    "not fired": "não disparado",
    "None has passed since it was created.": "Nenhum passou desde que foi criada.",
    "Next instants": "Próximos instantes",
    "None": "Nenhum",
    "Reset to code": "Voltar ao código",
    "Reset": "Restaurar",
    "As stored": "Como está guardada",
    "Fired": "Disparos",
    "Begins": "Começa",
    "Ends": "Termina",
    "If the previous job is live": "Se o trabalho anterior está vivo",
    "Missed instants": "Instantes perdidos",
    "Changed: {what}": "Mudado: {what}",
    "Declared": "Declarada",
    "in code": "no código",
    "no longer in code": "não está mais no código",
    "by {who}, {time}": "por {who}, {time}",
    "{paused} of {all} {all|schedule|schedules} paused": (
        "{paused} de {all} {all|programação|programações} em pausa"
    ),
    "the next one fires {time}": "a próxima dispara {time}",
    "{n} {n|instant was|instants were} missed so far": (
        "até agora {n} {n|instante foi perdido|instantes foram perdidos}"
    ),
    "New schedule…": "Nova programação…",
    "New schedule": "Nova programação",
    "It makes a job of the task at each of its instants, from now on.": (
        "Cria um trabalho da tarefa em cada instante, a partir de agora."
    ),
    "Name": "Nome",
    "Payload, as JSON": "Conteúdo, em JSON",
    "Create it": "Criar",
    "paused first, then by when they fire": (
        "primeiro as que estão em pausa, depois por quando disparam"
    ),
    "Part of a name or queue": "Parte de um nome ou fila",
    "Find": "Buscar",
    "Schedule": "Programação",
    "Last": "Última",
    "{shown} of {all}: name a part of what you look for.": (
        "{shown} de {all}: escreva uma parte do que procura."
    ),
    "No schedule is here": "Não há programações aqui",
    "A program declares them with app.schedule, or you make one here.": (
        "Um programa as declara com app.schedule, ou se cria uma aqui."
    ),
    "Schedule {schedule} is there": "A programação {schedule} foi criada",
    "Schedule {schedule} is changed": "A programação {schedule} mudou",
    "Schedule {schedule} follows the code again": (
        "A programação {schedule} volta a seguir o código"
    ),
    "Schedule {schedule} is paused": "A programação {schedule} está em pausa",
    "Schedule {schedule} fires again": "A programação {schedule} volta a disparar",
    "Schedule {schedule} has made a job": "A programação {schedule} criou um trabalho",
    "Schedule {schedule} is removed": "A programação {schedule} foi removida",
}
