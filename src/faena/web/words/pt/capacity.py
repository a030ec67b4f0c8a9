"""What the pages of capacity say, in Portuguese."""

from __future__ import annotations

from typing import Final

CAPACITY: Final[dict[str, str]] = {
    "5 % of jobs wait longer than {wait}; the objective of {time} needs {n} {n|slot|slots}.": (
        "5 % dos jobs esperam mais de {wait}; o objetivo de {time} precisa de {n} {n|vaga|vagas}."
    ),
    "Advice for each queue, what wants most first": (
        "Conselho para cada fila, primeiro a que mais precisa"
    ),
    "All limits, in percent of now": "Todos os limites, em porcentagem dos atuais",
    "All {n} queues have slots enough for what comes.": (
        "As {n} filas têm vagas suficientes para o que chega."
    ),
    "Arrivals": "Chegadas",
    "As it is now": "Como está agora",
    "As it is, and as it would be": "Como é e como seria",
    "At the busiest {rate} came, for which {n} {n|slot|slots} would be right.": (
        "No pico chegaram {rate}, para o que {n} {n|vaga seria|vagas seriam} o certo."
    ),
    "Capacity of {queue}": "Capacidade de {queue}",
    "Figure": "Número",
    "For the objective": "Para o objetivo",
    "In use": "Em uso",
    "It is being replayed": "Está sendo repetido",
    "It is being worked out": "Está sendo calculado",
    "Limits let {limit} begin and {rate} come: more slots would not help.": (
        "Os limites deixam começar {limit} e chegam {rate}: mais vagas não ajudariam."
    ),
    "Move a slider, then replay": "Mova um controle e repita",
    "No attempt has ended in the window: there is nothing to advise from.": (
        "Nenhuma tentativa terminou na janela: não há em que basear um conselho."
    ),
    "No number of slots keeps waits below {time}.": (
        "Nenhuma quantidade de vagas mantém a espera abaixo de {time}."
    ),
    "No worker serves it now; this is for one process.": (
        "Nenhum worker a atende agora; isto vale para um processo."
    ),
    "None now. Such as 100/min, 10/s.": "Agora nenhum. Por exemplo 100/min, 10/s.",
    "Nothing came in the window, or no attempt has ended: nothing to replay.": (
        "Nada chegou na janela, ou nenhuma tentativa terminou: não há nada a repetir."
    ),
    "Now {limits}; empty: as they are.": "Agora {limits}; vazio: como estão.",
    "Only {n} {n|attempt|attempts} began, too few to advise from: take a longer window.": (
        "Só {n} {n|tentativa começou|tentativas começaram}, poucas para aconselhar: escolha uma "
        "janela mais longa."
    ),
    "Replay {window}": "Repetir {window}",
    "Right": "O certo",
    "Run times differ much (p99 {time}): long jobs are better in a queue of their own.": (
        "As durações variam muito (p99 {time}): jobs longos ficam melhor em uma fila própria."
    ),
    (
        "Slots are those of all workers together. Right means that 70 % are in use; the "
        "objective is how long 5 % of jobs may wait."
    ): (
        "As vagas são as de todos os workers juntos. O certo é que 70 % estejam em uso; o "
        "objetivo é quanto 5 % dos jobs podem esperar."
    ),
    "Slots now": "Vagas agora",
    "Slots, by what came": "Vagas, pelo que chegou",
    "The last job would end {time} after the window: this does not keep up.": (
        "O último job terminaria {time} depois da janela: isto não dá conta."
    ),
    "The line is the objective.": "A linha é o objetivo.",
    "The objective of {time} is met either way.": (
        "O objetivo de {time} é cumprido das duas formas."
    ),
    "The objective of {time} is not met either way.": (
        "O objetivo de {time} não é cumprido de nenhuma forma."
    ),
    "The objective of {time} would be met, unlike now.": (
        "O objetivo de {time} seria cumprido, ao contrário de agora."
    ),
    "The objective of {time} would be missed, unlike now.": (
        "O objetivo de {time} não seria cumprido, ao contrário de agora."
    ),
    "There is too much to replay at once: choose a shorter window.": (
        "Há demais para repetir de uma vez: escolha uma janela mais curta."
    ),
    "Wait p95 of {tenant}": "Espera p95 de {tenant}",
    "Wait {name}": "Espera {name}",
    "Waits grow without end; the objective of {time} needs {n} {n|slot|slots}.": (
        "A espera cresce sem fim; o objetivo de {time} precisa de {n} {n|vaga|vagas}."
    ),
    "Weight of {tenant}": "Peso de {tenant}",
    "What came in the window is replayed, as it is and with your change. Nothing is changed.": (
        "Repete-se o que chegou na janela, como é e com a sua mudança. Nada é alterado."
    ),
    "What if": "E se",
    "What would have been": "O que teria acontecido",
    "With {n} {n|slot|slots}, 5 % of jobs would wait longer than {then}, instead of {now}.": (
        "Com {n} {n|vaga|vagas}, 5 % dos jobs esperariam mais de {then}, em vez de {now}."
    ),
    "Without limits": "Sem limites",
    "all others": "todos os outros",
    "as it is": "como é",
    "as it would be": "como seria",
    "for the objective {n}": "para o objetivo {n}",
    "of {n}": "de {n}",
    "p95 of waits of what came in each 48th of the window.": (
        "p95 da espera do que chegou em cada 48ª parte da janela."
    ),
    "p95 of waits through the window: up to {now} now, up to {then} then": (
        "p95 da espera ao longo da janela: até {now} agora, até {then} então"
    ),
    "what wants most first": "primeiro o que mais precisa",
    (
        "{jobs} {n|job|jobs} replayed, {exact} at their exact instants, the others spread within "
        "their minutes; workers measured a p95 of {time}."
    ): (
        "{jobs} {n|job repetido|jobs repetidos}, {exact} no seu instante exato e os demais "
        "distribuídos em seus minutos; os workers mediram um p95 de {time}."
    ),
    "{n} jobs so far; this page looks again by itself.": (
        "{n} jobs até agora; esta página olha de novo sozinha."
    ),
    "{n} now": "{n} agora",
    "{n} of {all} queues have been looked at.": "Foram vistas {n} de {all} filas.",
    "{n} of {all}: this page looks again by itself": (
        "{n} de {all}: esta página olha de novo sozinha"
    ),
    "{n} would be right": "{n} seria o certo",
    "{n} {n|slot is|slots are} right.": "{n} {n|vaga é|vagas são} o certo.",
    "{n} {n|slot|slots} would be enough: {spare} to spare.": (
        "{n} {n|vaga bastaria|vagas bastariam}: sobram {spare}."
    ),
    "{n} {n|slot|slots} would be right, {more} more than now.": (
        "{n} {n|vaga seria|vagas seriam} o certo, {more} a mais que agora."
    ),
    "{slots} {slots|slot|slots} cannot keep up: {n} would be right.": (
        "{slots} {slots|vaga não dá|vagas não dão} conta: {n} seria o certo."
    ),
    "{then} of slots would be in use, instead of {now}.": (
        "Estariam em uso {then} das vagas, em vez de {now}."
    ),
}
