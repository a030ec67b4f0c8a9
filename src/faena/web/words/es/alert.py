"""What the page of alerts says, in Spanish."""

from __future__ import annotations

from typing import Final

ALERT: Final[dict[str, str]] = {
    "About": "Sobre",
    "Alert": "Alerta",
    "Alerts that fire or will, worst first": "Alertas activas o por activarse, lo peor primero",
    "All that fires is silenced.": "Todo lo activo está silenciado.",
    "Change": "Cambio",
    "Changes of alerts, the latest first": "Cambios de alertas, lo último primero",
    "End it": "Terminarlo",
    "Firing now": "Activas ahora",
    "For": "Hace",
    "No alert has changed.": "Ninguna alerta cambió.",
    "No change matches.": "Ningún cambio coincide.",
    "Nobody is told of it for {lasting}: {reason}": "No se avisa a nadie por {lasting}: {reason}",
    (
        "Nobody is told of them for this time; states and history go on. What still fires then "
        "is told then."
    ): (
        "Durante ese tiempo no se avisa a nadie; los estados y el historial siguen. Lo que siga "
        "activo después se avisa entonces."
    ),
    (
        "Nobody is told of this alert for this time; its state and history go on. If it still "
        "fires then, it is told then."
    ): (
        "Durante ese tiempo no se avisa a nadie de esta alerta; su estado y su historial siguen. "
        "Si después sigue activa, se avisa entonces."
    ),
    "Nothing fires": "Nada activo",
    "Nothing fires.": "Ninguna alerta activa.",
    "Nothing is silenced.": "No hay nada silenciado.",
    "Rule": "Regla",
    "Send 1 trial notice": "Enviar 1 aviso de prueba",
    "Show": "Mostrar",
    "Silence 1 alert": "Silenciar 1 alerta",
    "Silence alerts?": "¿Silenciar alertas?",
    "Silence them": "Silenciarlas",
    "Silence {rule} of {subject}?": "¿Silenciar {rule} de {subject}?",
    "Silences": "Silencios",
    "Silence…": "Silenciar…",
    "Such as 30m or 2h.": "Por ejemplo 30m o 2h.",
    "The silence has ended": "El silencio terminó",
    (
        "This program declares no alerts: with alerts=Alerts(…) its workers watch queues, "
        "upstreams and the broker."
    ): (
        "Este programa no declara alertas: con alerts=Alerts(…) sus workers vigilan colas, "
        "proveedores y el broker."
    ),
    "This program tells nobody.": "Este programa no avisa a nadie.",
    "Value and bounds": "Valor y límites",
    "What has changed": "Qué cambió",
    "Who is told": "A quién se avisa",
    "Workers judge queues, upstreams and the broker.": (
        "Los workers evalúan colas, proveedores y el broker."
    ),
    "any": "cualquiera",
    "any rule": "cualquier regla",
    "anything": "cualquier cosa",
    "critical ones only": "solo críticas",
    "eased": "bajó a advertencia",
    "escalated": "pasó a crítica",
    "firing": "activa",
    "keeps {n} {n|alert|alerts} quiet": "calla {n} {n|alerta|alertas}",
    "silenced": "silenciada",
    "warning": "advertencia",
    "warnings too": "también advertencias",
    "{channel} has accepted a trial notice": "{channel} aceptó un aviso de prueba",
    "{n} in force": "{n} en vigor",
    "{n} more {n|is|are} beyond a bound, not for long yet.": (
        "{n} más {n|pasó|pasaron} un límite, desde hace poco."
    ),
    "{n} {n|alert fires|alerts fire}. The worst: {rule} of {subject}, for {time}: {text}.": (
        "{n} {n|alerta activa|alertas activas}. La peor: {rule} de {subject}, hace {time}: {text}."
    ),
    "{n} {n|notice waits|notices wait} to be sent.": (
        "{n} {n|aviso espera|avisos esperan} su envío."
    ),
}
