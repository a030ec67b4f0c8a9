"""Bulk actions, and how jobs are chosen for them, in Portuguese."""

from __future__ import annotations

from typing import Final

BULK: Final[dict[str, str]] = {
    "Bulk actions": "Ações em massa",
    "{n} or more": "{n} ou mais",
    "Which jobs": "Quais jobs",
    "All that match:": "Todos os que correspondem:",
    "{looked} of about {total} jobs were looked at for this number. The others are "
    "looked at while it runs.": (
        "Para este número foram olhados {looked} de cerca de {total} jobs. Os outros são "
        "olhados enquanto roda."
    ),
    "Jobs in another state are left alone, and those that come meanwhile may be.": (
        "Jobs em outro estado não são tocados; os que chegarem no meio-tempo, talvez também não."
    ),
    "For the record: others read it beside these jobs.": (
        "Para o registro: outros o leem junto a estes jobs."
    ),
    "{verb}: {jobs} {n|job|jobs}": "{verb}: {jobs} {n|job|jobs}",
    "No job matches that this can be done with.": (
        "Não corresponde nenhum job com o qual isto se possa fazer."
    ),
    "It goes on by itself, also when this page is closed: any worker carries it out.": (
        "Continua sozinha, mesmo com esta página fechada: qualquer worker a leva adiante."
    ),
    "It was stopped. What was done stays done; the rest waits until it goes on.": (
        "Foi parada. O que foi feito fica feito; o resto espera que continue."
    ),
    "It is over; {refused} {n|job was|jobs were} left alone.": (
        "Terminou; {refused} {n|job não foi tocado|jobs não foram tocados}."
    ),
    "It is over.": "Terminou.",
    "Begun by {who}, {time}.": "Começada por {who}, {time}.",
    "Go on": "Continuar",
    "How far it is": "Até onde chegou",
    "looked through": "olhado",
    "Done": "Feitos",
    "Left alone": "Não tocados",
    "Found, and next": "Encontrados, são os próximos",
    "Looked at": "Olhados",
    "of about {total}": "de cerca de {total}",
    "chosen one by one": "escolhidos um a um",
    "Why jobs were left alone": "Por que alguns não foram tocados",
    "it is {state}": "está {state}",
    "The first of them": "Os primeiros",
    "{number} under way; {n|it goes|they go} on by {n|itself|themselves}.": (
        "{number} em andamento; {n|continua sozinha|continuam sozinhas}."
    ),
    "None is under way. They begin where jobs are listed: choose some, or all that match.": (
        "Nenhuma em andamento. Começam onde há listas de jobs: escolha alguns, ou todos os "
        "que correspondem."
    ),
    "Bulk actions, those under way first": "Ações em massa, primeiro as que estão em andamento",
    "Begun": "Começou",
    "Nothing was done to many jobs yet": "Ainda não se fez nada com muitos jobs",
    "Choose all on this page": "Escolher todos desta página",
    "Selection": "Seleção",
    "None chosen": "Nenhum escolhido",
    "1 job chosen": "1 job escolhido",
    "# jobs chosen": "# jobs escolhidos",
    "Do with the chosen jobs:": "Com os jobs escolhidos:",
    "all that match, on all pages": "todos os que correspondem, em todas as páginas",
    "Run {jobs} {n|job|jobs} now?": "Executar {jobs} {n|job|jobs} agora?",
    "Run all {jobs} {n|job|jobs} that match now?": (
        "Executar agora {jobs} {n|job|jobs}, todos os que correspondem?"
    ),
    "They become ready now, before their time.": "Ficam prontos agora, antes da hora.",
    "Making jobs ready": "Deixando jobs prontos",
    "Cancel {jobs} {n|job|jobs}?": "Cancelar {jobs} {n|job|jobs}?",
    "Cancel all {jobs} {n|job|jobs} that match?": (
        "Cancelar {jobs} {n|job|jobs}, todos os que correspondem?"
    ),
    "They never start; running ones are asked to stop. They can be rerun later.": (
        "Nunca começam; aos que estão em execução pede-se que parem. Depois podem ser "
        "executados de novo."
    ),
    "Cancelling jobs": "Cancelando jobs",
    "Run {jobs} {n|job|jobs} again?": "Executar de novo {jobs} {n|job|jobs}?",
    "Run all {jobs} {n|job|jobs} that match again?": (
        "Executar de novo {jobs} {n|job|jobs}, todos os que correspondem?"
    ),
    "The same jobs run again, with fresh attempts.": (
        "Os mesmos jobs são executados de novo, com novas tentativas."
    ),
    "Running jobs again": "Executando jobs de novo",
    "Retry as new": "Tentar de novo como novos",
    "Retry {jobs} dead {n|job|jobs} as new?": (
        "Tentar de novo {jobs} {n|job morto como novo|jobs mortos como novos}?"
    ),
    "Retry all {jobs} dead {n|job|jobs} that match as new?": (
        "Tentar de novo como novos {jobs} {n|job morto|jobs mortos}, todos os que correspondem?"
    ),
    "A new job is made of each. The dead ones stay, marked as retried.": (
        "De cada um se cria um job novo. Os mortos ficam, marcados como tentados de novo."
    ),
    "Retrying dead jobs as new": "Tentando de novo jobs mortos",
    "Resolve": "Resolver",
    "Resolve {jobs} dead {n|job|jobs}?": "Resolver {jobs} {n|job morto|jobs mortos}?",
    "Resolve all {jobs} dead {n|job|jobs} that match?": (
        "Resolver {jobs} {n|job morto|jobs mortos}, todos os que correspondem?"
    ),
    "They are marked as settled by hand. Nothing retries them.": (
        "Ficam marcados como acertados à mão. Nada os tenta de novo."
    ),
    "Resolving dead jobs": "Resolvendo jobs mortos",
    "Discard": "Descartar",
    "Discard {jobs} dead {n|job|jobs}?": "Descartar {jobs} {n|job morto|jobs mortos}?",
    "Discard all {jobs} dead {n|job|jobs} that match?": (
        "Descartar {jobs} {n|job morto|jobs mortos}, todos os que correspondem?"
    ),
    "They are given up. Nothing retries them.": "São dados por perdidos. Nada os tenta de novo.",
    "Discarding dead jobs": "Descartando jobs mortos",
    "Remove {jobs} {n|job|jobs}?": "Remover {jobs} {n|job|jobs}?",
    "Remove all {jobs} {n|job|jobs} that match?": (
        "Remover {jobs} {n|job|jobs}, todos os que correspondem?"
    ),
    "The jobs and all that is known of them are gone.": (
        "Os jobs e tudo o que se sabe deles desaparecem."
    ),
    "Removing jobs": "Removendo jobs",
    "gone meanwhile": "já não estava",
    "ended after this began": "terminou depois que isto começou",
    "a flow or a group waits for it": "um fluxo ou um grupo espera por ele",
    "its new id is taken": "seu id novo já existe",
    "retried already": "já tentado de novo",
    "resolved already": "já resolvido",
    "discarded already": "já descartado",
    "The bulk action has begun": "A ação em massa começou",
    "The bulk action is stopped": "A ação em massa parou",
    "The bulk action goes on": "A ação em massa continua",
    "The view {name} is saved": "A vista {name} foi salva",
    "Everybody has the view {name}": "Todos têm a vista {name}",
    "The view {name} is forgotten": "A vista {name} foi esquecida",
}
