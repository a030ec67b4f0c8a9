"""Twilio's callbacks: whether one is genuine, and what has become of which message.

The signature covers the address and all fields, but no instant: a callback can be sent again by
whoever has seen one, and comes at least once anyway. Treat (sid, status) as its id.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from apps.providers.sms.errors import CallbackRefused
from apps.providers.sms.settings import Settings

_MOST_BYTES: Final = 64 * 1024
_MOST_FIELDS: Final = 100
_PORTS: Final = {"https": 443, "http": 80}
_CODE: Final = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusUpdate:
    """What has become of a message."""

    sid: str
    status: str
    error_code: int | None
    to: str = field(repr=False)


def sign(token: str, url: str, fields: Iterable[tuple[str, str]]) -> str:
    """The signature of a request to `url`."""
    text = url + "".join(name + value for name, value in sorted(set(fields)))
    digest = hmac.new(token.encode(), text.encode(errors="replace"), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


def read_status(settings: Settings, *, url: str, body: bytes, signature: str) -> StatusUpdate:
    """The update of a request that was made to `url`, as Twilio was told to call it."""
    fields = _fields(body)
    given = signature.encode(errors="replace")
    expected = [sign(settings.auth_token, one, fields) for one in _with_and_without_port(url)]
    is_genuine = [hmac.compare_digest(one.encode(), given) for one in expected]
    if not any(is_genuine):
        raise CallbackRefused("the signature of a callback is wrong")
    found = dict(fields)
    if not found.get("MessageSid") or not found.get("MessageStatus"):
        raise CallbackRefused("a callback must name a message and its status")
    code = found.get("ErrorCode", "")
    return StatusUpdate(
        sid=found["MessageSid"],
        status=found["MessageStatus"],
        error_code=int(code) if _CODE.fullmatch(code) else None,
        to=found.get("To", ""),
    )


def _fields(body: bytes) -> list[tuple[str, str]]:
    if len(body) > _MOST_BYTES:
        raise CallbackRefused(f"a callback must have at most {_MOST_BYTES} bytes")
    try:
        return parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise CallbackRefused("a callback must be a form") from None


def _with_and_without_port(url: str) -> list[str]:
    """Twilio signs addresses with their port or without, and does not say which."""
    parts = urlsplit(url)
    if parts.port is not None:
        other = parts.netloc.removesuffix(f":{parts.port}")
    else:
        other = f"{parts.netloc}:{_PORTS.get(parts.scheme, 443)}"
    return [url, parts._replace(netloc=other).geturl()]
