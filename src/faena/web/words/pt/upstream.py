"""What the pages of upstreams, features and levels say, in Portuguese."""

from __future__ import annotations

from typing import Final

UPSTREAM: Final[dict[str, str]] = {
    (
        "A program declares outside services with app.upstream(…): their limits, breakers and "
        "budgets are shown here."
    ): (
        "Um programa declara serviços externos com app.upstream(…): aqui aparecem seus limites, "
        "disjuntores e orçamentos."
    ),
    "A program declares what it does for its users with app.feature(…).": (
        "Um programa declara o que faz por seus usuários com app.feature(…)."
    ),
    "All calls": "Todas as chamadas",
    (
        "All that is known of it goes, but its costs stay in reports. A running program that "
        "still declares it does so again. This cannot be undone."
    ): (
        "Tudo o que se sabe dele é apagado, mas seus custos ficam nos relatórios. Um programa em "
        "execução que ainda o declara volta a fazê-lo. Não pode ser desfeito."
    ),
    "As tenant": "Como cliente",
    "Breaker": "Disjuntor",
    "Budget": "Orçamento",
    "Budget used up": "Orçamento esgotado",
    "Budgets": "Orçamentos",
    "Calls to {upstream} are permitted again": "As chamadas a {upstream} estão permitidas de novo",
    "Change the panic…": "Alterar o pânico…",
    "Closed": "Fechado",
    "Empty: what the feature says itself.": "Vazio: as palavras do próprio recurso.",
    "End “{state}” by hand": "Encerrar “{state}” manual",
    (
        "Every process hears of it at once, and the banner names it. The worst source counts: it "
        "can be worse than this, never better."
    ): (
        "Todos os processos ficam sabendo na hora e o aviso o menciona. Vale a pior fonte: pode "
        "estar pior que isto, nunca melhor."
    ),
    "Failed calls": "Chamadas com falha",
    "Feature": "Recurso",
    "Features": "Recursos",
    "Features, worst first": "Recursos, o pior primeiro",
    "Forget 1 feature": "Esquecer 1 recurso",
    "Forget 1 level": "Esquecer 1 nível",
    "Forget 1 upstream": "Esquecer 1 provedor",
    "Forget {feature}?": "Esquecer {feature}?",
    "Forget {level}?": "Esquecer {level}?",
    "Forget {upstream}?": "Esquecer {upstream}?",
    "In panic": "Em pânico",
    "In panic: {reason}": "Em pânico: {reason}",
    "In this state": "Neste estado",
    "Instead": "No lugar",
    "It has no budget.": "Não tem orçamento.",
    "It has no limits.": "Não tem limites.",
    (
        "It is gone with its state, for all processes. A running program that still declares it "
        "does so again. This cannot be undone."
    ): (
        "É apagado com seu estado, para todos os processos. Um programa em execução que ainda o "
        "declara volta a fazê-lo. Não pode ser desfeito."
    ),
    "It takes calls as usual.": "Recebe chamadas normalmente.",
    "It wants no calls; they go on {time}.": (
        "Pediu para não receber chamadas; elas continuam {time}."
    ),
    "Levels": "Níveis",
    "Limit": "Limite",
    "Limit 1 feature": "Limitar 1 recurso",
    "Limit used up": "Limite esgotado",
    "Limit {feature}?": "Limitar {feature}?",
    "Limit {n} {n|feature|features}": "Limitar {n} {n|recurso|recursos}",
    "Limits": "Limites",
    "Limits and what is left of them": "Limites e o que resta deles",
    "More calls are permitted step by step.": "Mais chamadas são permitidas aos poucos.",
    "Next probe": "Próximo teste",
    "No call is permitted since {time}: {reason} ({who}).": (
        "Nenhuma chamada é permitida desde {time}: {reason} ({who})."
    ),
    (
        "No call is permitted, in any process, until it ends; {calls} ended in the last window. "
        "Jobs that need it wait and use up no attempt."
    ): (
        "Nenhuma chamada é permitida, em nenhum processo, até terminar; na última janela houve "
        "{calls}. Os jobs que precisam dele esperam e não gastam tentativas."
    ),
    "No call to {upstream} is permitted: {reason}": (
        "Nenhuma chamada a {upstream} é permitida: {reason}"
    ),
    "No feature": "Nenhum recurso",
    "No feature is limited by it.": "Não limita nenhum recurso.",
    "No program declares an upstream.": "Nenhum programa declara um provedor.",
    "No upstream": "Nenhum provedor",
    "Open": "Aberto",
    "Outside services": "Serviços externos",
    "Panic…": "Pânico…",
    "Permit calls again": "Permitir chamadas de novo",
    "Probes decide whether it closes.": "Os testes decidem se ele fecha.",
    "Probing": "Testando",
    "Rate limited": "Com freio",
    "Recovering": "Recuperando",
    "Room again": "Há espaço",
    "Set by hand…": "Definir à mão…",
    "Show its limits and breaker": "Ver seus limites e disjuntor",
    "Shown wherever a job waits for it.": "Aparece onde um job espera por ele.",
    "Some tenants": "Alguns clientes",
    "Stop all calls to 1 upstream": "Parar todas as chamadas a 1 provedor",
    "Stop all calls to {upstream}?": "Parar todas as chamadas a {upstream}?",
    "Switch off": "Desativar",
    "Switch on…": "Ativar…",
    "Switch {level} on?": "Ativar {level}?",
    "Tenants have no breakers of their own here.": "Aqui os clientes não têm disjuntores próprios.",
    "Tenants in trouble": "Clientes com problemas",
    "Tenants whose own breaker is not closed": "Clientes cujo disjuntor não está fechado",
    "The breakers of all tenants are closed.": (
        "Os disjuntores de todos os clientes estão fechados."
    ),
    "The budget of {amount} is used up; there is room {time}.": (
        "O orçamento de {amount} está esgotado; há espaço {time}."
    ),
    "The limit of {limit} is used up; there is room {time}.": (
        "O limite de {limit} está esgotado; há espaço {time}."
    ),
    "The next call is the probe.": "A próxima chamada é o teste.",
    "The next probe goes {time}.": "O próximo teste sai {time}.",
    "The total budgets are forgotten": "Os orçamentos totais foram esquecidos",
    "Upstream": "Provedor",
    "Upstreams, worst first": "Provedores, o pior primeiro",
    "Users are told": "Aos usuários se diz",
    "What it limits now": "O que limita agora",
    "What it says of {n} {n|feature|features} ends. This cannot be undone.": (
        "Termina o que diz de {n} {n|recurso|recursos}. Não pode ser desfeito."
    ),
    "What was set by hand of {feature} has ended": "Terminou o que foi definido à mão de {feature}",
    "all are healthy": "todos em ordem",
    "all in {currency}": "todos em {currency}",
    "all processes together": "todos os processos juntos",
    "calls should be frugal": "convém gastar pouco",
    "closed": "fechado",
    "each tenant": "cada cliente",
    "for each tenant": "para cada cliente",
    "it opens at {part} of {n} or more": "abre com {part} de {n} ou mais",
    "more than an hour": "mais de uma hora",
    "more than an hour ago": "há mais de uma hora",
    "nearly used up": "quase esgotado",
    "of tenant {tenant}": "do cliente {tenant}",
    "of {amount}": "de {amount}",
    "one for all calls": "um para todas as chamadas",
    "one for each tenant; this is that of calls without one": (
        "um por cliente; este é o das chamadas sem cliente"
    ),
    "open": "aberto",
    "opened {n} {n|time|times} in a row": "abriu {n} {n|vez|vezes seguidas}",
    "probing": "testando",
    "recovering": "recuperando",
    "reserved by calls under way": "reservado por chamadas em andamento",
    "saved sets of states, for days on which less must do": (
        "conjuntos salvos de estados, para dias em que é preciso se virar com menos"
    ),
    "the next call": "a próxima chamada",
    "this month": "este mês",
    "of this tenant": "deste cliente",
    "today": "hoje",
    "used up": "esgotado",
    "used up: calls stop": "esgotado: as chamadas param",
    "within": "dentro do previsto",
    "{amount} left": "restam {amount}",
    "{failed} of {calls}": "{failed} de {calls}",
    "{failed} of {calls} calls failed, {time}.": "Falharam {failed} de {calls} chamadas, {time}.",
    "{feature} is forgotten": "{feature} foi esquecido",
    "{feature} is {state} by hand": "{feature} foi definido à mão: {state}",
    "{level} is forgotten": "{level} foi esquecido",
    "{level} is off": "{level} está inativo",
    "{level} is on": "{level} está ativo",
    "{n} of {all} {n|is|are} limited; overall: {state}": (
        "{n} de {all} {n|limitado|limitados}; no conjunto: {state}"
    ),
    "{n} were slow": "{n} foram lentas",
    "{n} {n|feature is|features are} limited until it is off.": (
        "{n} {n|recurso fica limitado|recursos ficam limitados} até desativá-lo."
    ),
    "{n} {n|tenant is|tenants are} refused calls.": (
        "{n} {n|cliente tem|clientes têm} chamadas recusadas."
    ),
    "{n} {n|upstream takes|upstreams take} calls as usual.": (
        "{n} {n|provedor recebe|provedores recebem} chamadas normalmente."
    ),
    "{percent} of {amount} spent": "{percent} de {amount} gasto",
    "{upstream} is forgotten": "{upstream} foi esquecido",
}
