"""One request to Twilio and its answer, and what its refusals mean."""

from __future__ import annotations

from typing import Any, Final

import httpx
import msgspec

from apps.providers import http
from apps.providers.reading import typed_or_none
from apps.providers.sms.errors import (
    Permanent,
    RateLimited,
    Retryable,
    SmsError,
    UnknownOutcome,
)
from apps.providers.sms.settings import Settings

_MOST_BYTES: Final = 2**20
_CONNECT_S: Final = 5.0


class _Refusal(msgspec.Struct):
    code: int | None = None


class Exchange:
    """Sends requests for one account."""

    def __init__(self, settings: Settings, client: httpx.AsyncClient) -> None:
        self._settings = settings
        self._exchange = http.Exchange(
            "twilio",
            client,
            settings.timeout_s,
            _MOST_BYTES,
            unsent=Retryable,
            connect_s=_CONNECT_S,
        )
        http.keep_queries_out_of_logs()

    async def ask(self, method: str, path: str, **content: Any) -> bytes:
        """What is answered to a form (`data`) or a question (`params`)."""
        settings = self._settings
        unclear = UnknownOutcome if method == "POST" else Retryable
        base = f"{settings.base_url.rstrip('/')}/2010-04-01/Accounts/{settings.account_sid}"
        answer = await self._exchange.ask(
            method,
            f"{base}/{path}",
            unclear=unclear,
            auth=(settings.account_sid, settings.auth_token),
            **content,
        )
        if not answer.is_success:
            raise _refusal(answer, unclear)
        return answer.body


def _refusal(answer: http.Answer, unclear: type[SmsError]) -> SmsError:
    status, code = answer.status, _code(answer.body)
    words = f"status {status}{f' (code {code})' if code else ''}"
    if status == 429:
        return RateLimited("twilio asked to wait", retry_after=answer.retry_after, code=code)
    if status >= 500:
        return unclear(f"twilio answered with {words}", code=code)
    if status < 400 or status == 408:
        return Retryable(f"twilio answered with {words}", code=code)
    return Permanent(f"twilio refused the request with {words}", code=code)


def _code(body: bytes) -> int | None:
    found = typed_or_none(body, _Refusal)
    return None if found is None else found.code
