"""What the page of alerts says, in Portuguese."""

from __future__ import annotations

from typing import Final

ALERT: Final[dict[str, str]] = {
    "About": "Sobre",
    "Alert": "Alerta",
    "Alerts that fire or will, worst first": "Alertas ativos ou prestes a ativar, o pior primeiro",
    "All that fires is silenced.": "Tudo o que está ativo está silenciado.",
    "Change": "Mudança",
    "Changes of alerts, the latest first": "Mudanças de alertas, o mais recente primeiro",
    "End it": "Encerrar",
    "Firing now": "Ativos agora",
    "For": "Há",
    "No alert has changed.": "Nenhum alerta mudou.",
    "No change matches.": "Nenhuma mudança corresponde.",
    "Nobody is told of it for {lasting}: {reason}": "Ninguém é avisado por {lasting}: {reason}",
    (
        "Nobody is told of them for this time; states and history go on. What still fires then "
        "is told then."
    ): (
        "Durante esse tempo ninguém é avisado; os estados e o histórico continuam. O que ainda "
        "estiver ativo depois é avisado então."
    ),
    (
        "Nobody is told of this alert for this time; its state and history go on. If it still "
        "fires then, it is told then."
    ): (
        "Durante esse tempo ninguém é avisado deste alerta; seu estado e histórico continuam. Se "
        "depois ainda estiver ativo, é avisado então."
    ),
    "Nothing fires": "Nada ativo",
    "Nothing fires.": "Nenhum alerta ativo.",
    "Nothing is silenced.": "Nada está silenciado.",
    "Rule": "Regra",
    "Send 1 trial notice": "Enviar 1 aviso de teste",
    "Show": "Mostrar",
    "Silence 1 alert": "Silenciar 1 alerta",
    "Silence alerts?": "Silenciar alertas?",
    "Silence them": "Silenciá-los",
    "Silence {rule} of {subject}?": "Silenciar {rule} de {subject}?",
    "Silences": "Silêncios",
    "Silence…": "Silenciar…",
    "Such as 30m or 2h.": "Por exemplo 30m ou 2h.",
    "The silence has ended": "O silêncio terminou",
    (
        "This program declares no alerts: with alerts=Alerts(…) its workers watch queues, "
        "upstreams and the broker."
    ): (
        "Este programa não declara alertas: com alerts=Alerts(…) seus workers vigiam filas, "
        "provedores e o broker."
    ),
    "This program tells nobody.": "Este programa não avisa ninguém.",
    "Value and bounds": "Valor e limites",
    "What has changed": "O que mudou",
    "Who is told": "Quem é avisado",
    "Workers judge queues, upstreams and the broker.": (
        "Os workers avaliam filas, provedores e o broker."
    ),
    "any": "qualquer",
    "any rule": "qualquer regra",
    "anything": "qualquer coisa",
    "critical ones only": "só críticos",
    "eased": "baixou para aviso",
    "escalated": "passou a crítico",
    "firing": "ativo",
    "keeps {n} {n|alert|alerts} quiet": "cala {n} {n|alerta|alertas}",
    "silenced": "silenciado",
    "warning": "aviso",
    "warnings too": "também avisos",
    "{channel} has accepted a trial notice": "{channel} aceitou um aviso de teste",
    "{n} in force": "{n} em vigor",
    "{n} more {n|is|are} beyond a bound, not for long yet.": (
        "Mais {n} {n|passou|passaram} de um limite, há pouco tempo."
    ),
    "{n} {n|alert fires|alerts fire}. The worst: {rule} of {subject}, for {time}: {text}.": (
        "{n} {n|alerta ativo|alertas ativos}. O pior: {rule} de {subject}, há {time}: {text}."
    ),
    "{n} {n|notice waits|notices wait} to be sent.": "{n} {n|aviso espera|avisos esperam} o envio.",
}
