"""Text messages through Twilio. Nothing is retried here.

    client = Client(Settings.from_env(os.environ), http)
    message = await client.send("+5491155550000", "Su técnico llega a las 10.")
    upstream.spend(message.items)

Twilio has no idempotency keys. After an `UnknownOutcome`, look with `find` whether the message is
there before it is sent again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

import httpx
import msgspec

from apps.providers.reading import typed
from apps.providers.sms.errors import Permanent, Retryable, SmsError, UnknownOutcome
from apps.providers.sms.exchange import Exchange
from apps.providers.sms.message import Message, segments
from apps.providers.sms.settings import Settings

T = TypeVar("T")

MOST_CHARACTERS: Final = 1600
_NUMBER: Final = re.compile(r"\+[1-9][0-9]{6,14}")
_SID: Final = re.compile(r"(SM|MM)[0-9a-f]{32}")


class _Shown(msgspec.Struct):
    sid: str
    status: str
    to: str
    date_created: str
    num_segments: str = "0"
    body: str | None = None
    error_code: int | None = None


class _Page(msgspec.Struct):
    messages: list[_Shown]


class Client:
    """Sends messages, and looks for them."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._settings, self._exchange = settings, Exchange(settings, http)

    async def send(self, to: str, body: str) -> Message:
        """Send a text to a number in international form."""
        if not _NUMBER.fullmatch(to):
            raise Permanent("a number must be + and 7 to 15 digits, such as +5491155550000")
        if not 0 < len(body) <= MOST_CHARACTERS:
            raise Permanent(f"a text must have 1 to {MOST_CHARACTERS} characters, got {len(body)}")
        given = self._settings
        form = {
            "To": to,
            "Body": body,
            "From": given.sender,
            "MessagingServiceSid": given.messaging_service_sid,
            "StatusCallback": given.status_callback,
        }
        set_fields = {name: value for name, value in form.items() if value is not None}
        answer = await self._exchange.ask("POST", "Messages.json", data=set_fields)
        return _message(_read(answer, _Shown, UnknownOutcome), body, UnknownOutcome)

    async def get(self, sid: str) -> Message:
        """What has become of a message."""
        if not _SID.fullmatch(sid):
            raise Permanent("a sid must be SM or MM and 32 hexadecimal digits")
        answer = await self._exchange.ask("GET", f"Messages/{sid}.json")
        return _message(_read(answer, _Shown, Retryable), "", Retryable)

    async def find(self, to: str, *, since: datetime) -> Sequence[Message]:
        """The messages to a number since an instant, newest first, 50 at most.

        Not by `DateSent`, which messages that are still queued do not have.
        """
        answer = await self._exchange.ask(
            "GET", "Messages.json", params={"To": to, "PageSize": "50"}
        )
        page = _read(answer, _Page, Retryable)
        found = [_message(one, "", Retryable) for one in page.messages]
        since = since.replace(microsecond=0)  # Twilio's instants are whole seconds
        return [one for one in found if one.created_at >= since]


def _read(answer: bytes, kind: type[T], unclear: type[SmsError]) -> T:
    return typed(answer, kind, unclear("twilio's answer cannot be read"))


def _message(shown: _Shown, sent: str, unclear: type[SmsError]) -> Message:
    """A messaging service says 0 segments until it has sent a message: then they are counted."""
    body, number = shown.body or sent, shown.num_segments
    counted = int(number) if re.fullmatch(r"[0-9]{1,4}", number) else 0
    try:
        created_at: Any = parsedate_to_datetime(shown.date_created)
    except (ValueError, TypeError, OverflowError):
        raise unclear("twilio's answer cannot be read") from None
    return Message(
        sid=shown.sid,
        status=shown.status,
        to=shown.to,
        body=body,
        segments=counted or segments(body),
        error_code=shown.error_code,
        created_at=created_at if created_at.tzinfo else created_at.replace(tzinfo=UTC),
    )
