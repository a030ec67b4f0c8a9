"""Sends a notice through its channel, once for each call."""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections.abc import Mapping

import msgspec

from faena.engine.calls.alerts import Notice
from faena.options.channels import Channel, Chat, Log, Mail, Webhook, check_secret
from faena.telemetry.alerts.mail import mail_of, send_mail
from faena.telemetry.alerts.message import document, text
from faena.telemetry.alerts.outgoing import post

_log = logging.getLogger("faena.alerts")


async def deliver(
    app: str, name: str, notice: Notice, channel: Channel, environ: Mapping[str, str]
) -> None:
    """Return when the channel has accepted it; raises Undelivered, Refused or ConfigError."""
    match channel:
        case Log():
            level = logging.ERROR if notice.severity == "critical" else logging.WARNING
            _log.log(level, "%s", text(app, notice))
        case Webhook():
            body = msgspec.json.encode(document(app, name, notice))
            secret = check_secret(channel.secret_of("secret", environ))
            headers = {"Faena-Notice": name, **signature(secret, body, int(time.time()))}
            url = channel.secret_of("url", environ)
            await post(url, body, headers, allow_private=channel.allow_private)
        case Chat():
            body = msgspec.json.encode({"text": text(app, notice)})
            url = channel.secret_of("url", environ)
            await post(url, body, {}, allow_private=channel.allow_private)
        case Mail():
            password = channel.secret_of("password", environ) if channel.user else None
            await send_mail(mail_of(app, name, notice, channel), channel, password)
        case _:
            raise TypeError(channel)


def signature(secret: str, body: bytes, at_s: int) -> dict[str, str]:
    """Of the raw bytes and the instant, so that nobody can send an old notice later."""
    signed = b"%d." % at_s + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return {"Faena-Timestamp": str(at_s), "Faena-Signature": f"sha256={digest}"}
