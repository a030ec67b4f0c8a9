"""The pages of tenants, in Portuguese."""

from __future__ import annotations

from typing import Final

TENANT: Final[dict[str, str]] = {
    "Start": "Início",
    "At a glance": "De relance",
    "{left} of {most} running are free": "{left} de {most} em execução estão livres",
    "room for {left} more jobs, of {most}": "espaço para mais {left} trabalhos, de {most}",
    "{limit}: used up": "{limit}: esgotado",
    "{limit}: has room": "{limit}: com folga",
    "Held in {queues} until somebody releases it.": "Retido em {queues} até que alguém o libere.",
    "Held in {queues}: the last hold ends {time}.": (
        "Retido em {queues}: a última retenção termina {time}."
    ),
    "It waits for limits of its own. {words}": "Espera por seus próprios limites. {words}",
    "Nothing of its own keeps its jobs: they wait for their turn or their time.": (
        "Nada próprio segura seus trabalhos: esperam a vez ou a hora."
    ),
    "None of its jobs waits.": "Nenhum de seus trabalhos espera.",
    "{held} {held|tenant is|tenants are} held, {throttled} {throttled|waits|wait} for "
    "limits of their own; {busy} of {all} have work": (
        "{held} {held|cliente retido|clientes retidos}, {throttled} "
        "{throttled|espera|esperam} por limites próprios; {busy} de {all} têm trabalho"
    ),
    "{number} {n|tenant|tenants}": "{number} {n|cliente|clientes}",
    "more workers would not help": "mais workers não ajudariam",
    "more slots would help": "mais vagas ajudariam",
    "of 1 (Jain)": "de 1 (Jain)",
    "{number} others": "{number} outros",
    "weight {number}": "peso {number}",
    "no limits": "sem limites",
    "{n} running": "{n} em execução",
    "at most {n} jobs": "no máximo {n} trabalhos",
    "own shard": "fragmento próprio",
    "Held by somebody": "Retidos por alguém",
    "Wait for limits of their own": "Esperam por limites próprios",
    "Wait for their turn": "Esperam a vez",
    "Fairness": "Equidade",
    "This minute": "Este minuto",
    "15 min": "15 min",
    "Busiest": "Com mais trabalho",
    "Longest wait": "Maior espera",
    "Throttled": "Contidos",
    "Decided for": "Com decisões",
    "By name": "Por nome",
    "Dead letters of {tenant}": "Cartas mortas de {tenant}",
    "Jobs that ran out of attempts, with what they died of": (
        "Trabalhos que esgotaram as tentativas, e do que morreram"
    ),
    "Decide about them": "Decidir sobre elas",
    "Go on": "Continuar",
    "Pages of this tenant": "Páginas deste cliente",
    "Jobs of {tenant}": "Trabalhos de {tenant}",
    "Show": "Mostrar",
    "No {state} job of it here": "Aqui não há trabalhos dele: {state}",
    "{n} jobs of this state were looked through.": "{n} trabalhos deste estado foram examinados.",
    "Cancel…": "Cancelar…",
    "Settings…": "Ajustes…",
    "Where": "Onde",
    "in all queues": "em todas as filas",
    "Hold {tenant}?": "Reter {tenant}?",
    "{jobs} ready {n|job starts|jobs start} no more until it is released. Running jobs go "
    "on, new ones are accepted.": (
        "{jobs} {n|trabalho pronto não começa|trabalhos prontos não começam} até que seja "
        "liberado. Os em execução continuam e novos são aceitos."
    ),
    "Hold {n} ready {n|job|jobs}": "Reter {n} {n|trabalho pronto|trabalhos prontos}",
    "Cancel ready jobs of {tenant}?": "Cancelar os trabalhos prontos de {tenant}?",
    "{jobs} ready {n|job|jobs} will not run, at most 500 of each queue at once. Jobs that "
    "run or are delayed stay. This is not undone; cancelled jobs can be run again one by "
    "one.": (
        "{jobs} {n|trabalho pronto não rodará|trabalhos prontos não rodarão}, no máximo "
        "500 por fila de cada vez. Os em execução ou adiados ficam. Não se desfaz; os "
        "cancelados podem rodar de novo um por um."
    ),
    "Cancel {n} {n|job|jobs}": "Cancelar {n} {n|trabalho|trabalhos}",
    "They replace those of the queue for this tenant, from the next job on. `queue`: as "
    "the queue says.": (
        "Substituem os da fila para este cliente, a partir do próximo trabalho. `queue`: "
        "como a fila diz."
    ),
    "Change the settings": "Mudar os ajustes",
    "Such as 5/s, 100/min; none: no limits.": "Como 5/s, 100/min; none: sem limites.",
    "Running at most": "Em execução no máximo",
    "Weight": "Peso",
    "Twice the weight has twice the turns; others have 1.": (
        "O dobro do peso tem o dobro das vezes; os outros têm 1."
    ),
    "Waiting and running at most": "Em espera e em execução no máximo",
    "Such as 1h; empty: until they are changed.": "Como 1h; vazio: até que sejam mudados.",
    "Settings of {tenant} in all queues": "Ajustes de {tenant} em todas as filas",
    "Held in {queue}: {reason}": "Retido em {queue}: {reason}",
    "{n} ready": "{n} prontos",
    "Running": "Em execução",
    "Wait, mean": "Espera média",
    "of this minute": "deste minuto",
    "of the last two minutes": "dos últimos dois minutos",
    "Share of starts": "Parte dos inícios",
    "Cost this month": "Custo do mês",
    "where it waits most first": "primeiro onde mais espera",
    "The tenant in each queue": "O cliente em cada fila",
    "Kept back by": "Contido por",
    "Limits and what is left": "Limites e o que resta",
    "Decided for it": "Decidido para ele",
    "Settings end {time}.": "Os ajustes terminam {time}.",
    "still moving": "ainda se movendo",
    "Return…": "Devolver…",
    "Own shard…": "Fragmento próprio…",
    "It has no jobs that wait or run": "Não tem trabalhos em espera nem em execução",
    "Nothing is decided for it either.": "Também não há nada decidido para ele.",
    "Settings of {tenant} in {queue}": "Ajustes de {tenant} em {queue}",
    "Return {tenant} to the shared shards of {queue}?": (
        "Devolver {tenant} aos fragmentos compartilhados de {queue}?"
    ),
    "{jobs} waiting {n|job moves|jobs move} back in order.": (
        "{jobs} {n|trabalho em espera volta|trabalhos em espera voltam} em ordem."
    ),
    "Return {tenant}": "Devolver {tenant}",
    "Give {tenant} a shard of its own in {queue}?": (
        "Dar a {tenant} um fragmento próprio em {queue}?"
    ),
    "{jobs} waiting {n|job moves|jobs move} there in order. Every worker of the queue gets "
    "slots for it beside those of others.": (
        "{jobs} {n|trabalho em espera se muda|trabalhos em espera se mudam} para lá em "
        "ordem. Cada worker da fila lhe dá vagas além das dos outros."
    ),
    "Give it a shard": "Dar um fragmento",
    "All": "Todas",
    "None of its jobs waits for a decision.": "Nenhum de seus trabalhos espera uma decisão.",
    "a day": "por dia",
    "a month": "por mês",
    "{spent} of {amount} spent, {left} left": "{spent} de {amount} gastos, restam {left}",
    "No upstream has a budget for each tenant.": "Nenhum provedor tem um orçamento por cliente.",
    "Who was given the starts": "A quem foram dados os inícios",
    "by weight, over all queues": "segundo o peso, em todas as filas",
    "No job with a tenant was started.": "Nenhum trabalho com cliente começou.",
    "Part of a name": "Parte de um nome",
    "All tenants": "Todos os clientes",
    "Pages": "Páginas",
    "{shown} of {all}": "{shown} de {all}",
    "First page": "Primeira página",
    "No tenant with work has this in its name": "Nenhum cliente com trabalho tem isto no nome",
    "No tenant is here": "Não há clientes aqui",
    "Tenants are shown while they have jobs that wait or run, and while something is "
    "decided for them.": (
        "Os clientes aparecem enquanto têm trabalhos em espera ou em execução, e enquanto "
        "há algo decidido para eles."
    ),
    "Open {name}": "Abrir {name}",
    "{tenant} is held: {reason}": "{tenant} ficou retido: {reason}",
    "{tenant} is released": "{tenant} foi liberado",
    "The settings of {tenant} are changed": "Os ajustes de {tenant} mudaram",
    "{tenant} has the settings of its queues again": (
        "{tenant} voltou a ter os ajustes de suas filas"
    ),
    "{tenant} gets a shard of its own": "{tenant} passa a um fragmento próprio",
    "{tenant} returns to the shared shards": "{tenant} volta aos fragmentos compartilhados",
    "Ready jobs of {tenant} are cancelled": "Trabalhos prontos de {tenant} foram cancelados",
}
