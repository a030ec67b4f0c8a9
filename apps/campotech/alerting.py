"""Whom Faena's alerts tell: operators, in the log, and where else the environment says.

Bounds are those of `thresholds`; each queue is declared with its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from apps.campotech import thresholds
from apps.campotech.pace import Pace
from apps.providers import mail
from apps.providers.environment import check_address
from faena import Alerts, Chat, Log, Mail, Rule, Webhook
from faena.errors import ConfigError

Channel: TypeAlias = "Log | Webhook | Mail | Chat"
Severity = Literal["warning", "critical"]

_PREFIX: Final = "CAMPOTECH_ALERT"
_KINDS: Final = ("WEBHOOK_URL", "CHAT_URL", "MAIL_TO")
_VARIABLES: Final = {
    "secret": f"{_PREFIX}_WEBHOOK_SECRET",
    "to": f"{_PREFIX}_MAIL_TO",
    "tls": "SMTP_SECURITY",
}
"""Where the fields are from that Faena may refuse."""


def declared(channels: Sequence[Channel], pace: Pace) -> Alerts:
    """What is watched, and who is told."""
    known, settles = thresholds.DEFAULT, pace.of("5m")
    return Alerts(
        channels=channels,
        rules={
            "depth": Rule(levels=known.depth, clear_after=settles),
            "wait": Rule(levels=thresholds.waits(known.wait_ms, pace), clear_after=settles),
            "error_rate": Rule(levels=known.error_percent, clear_after=settles),
            "stalled": Rule(levels=known.stalled_per_hour, clear_after=settles),
        },
        interval=pace.interval("30s"),
    )


def from_env(environ: Mapping[str, str], account: mail.Settings | None) -> tuple[Channel, ...]:
    """The log, and those whose variables are set; raises ValueError that names a wrong one."""
    webhook, chat, to = (environ.get(f"{_PREFIX}_{one}") for one in _KINDS)
    channels: list[Channel] = [Log()]
    try:
        if webhook:
            channels.append(_webhook(environ, webhook))
        if chat:
            channels.append(_chat(environ, chat))
        if to:
            channels.append(_mail(environ, to, account))
    except ConfigError as error:
        name = _VARIABLES.get(error.field or "", _PREFIX)
        raise ValueError(f"{name} is wrong: {error}") from None
    return tuple(channels)


def _webhook(environ: Mapping[str, str], url: str) -> Webhook:
    check_address(f"{_PREFIX}_WEBHOOK_URL", url)
    return Webhook(
        name="webhook",
        url=url,
        secret=environ.get(f"{_PREFIX}_WEBHOOK_SECRET", ""),
        severity=_severity(environ, "WEBHOOK"),
        allow_private=True,  # the operators' own address
    )


def _chat(environ: Mapping[str, str], url: str) -> Chat:
    check_address(f"{_PREFIX}_CHAT_URL", url)
    return Chat(name="chat", url=url, severity=_severity(environ, "CHAT"), allow_private=True)


def _mail(environ: Mapping[str, str], to: str, account: mail.Settings | None) -> Mail:
    if account is None:
        raise ValueError(f"SMTP_HOST must be set with {_PREFIX}_MAIL_TO, got nothing")
    return Mail(
        name="mail",
        host=account.host,
        port=account.port,
        tls=account.security,
        sender=account.sender,
        user=account.user,
        password=account.password,
        to=[one.strip() for one in to.split(",")],
        severity=_severity(environ, "MAIL"),
    )


def _severity(environ: Mapping[str, str], kind: str) -> Severity:
    """From which severity on a channel is told."""
    name = f"{_PREFIX}_{kind}_SEVERITY"
    match environ.get(name, "warning"):
        case "warning":
            return "warning"
        case "critical":
            return "critical"
        case other:
            raise ValueError(f"{name} must be warning or critical, got {other!r}")
