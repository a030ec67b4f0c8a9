"""Notices to devices through Firebase Cloud Messaging (HTTP v1). Nothing is retried here, but a
message whose token has expired meanwhile: that is sent once more with a new one.

    client = Client(Settings.from_env(os.environ), http)
    await client.send(Notice(token=device, title="Trabajo nuevo", body="…", collapse_key="job-7"))
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import httpx
import msgspec

from apps.providers.http import Answer, Exchange
from apps.providers.push.errors import Retryable, UnknownOutcome
from apps.providers.push.exchange import code_of, refusal
from apps.providers.push.notice import Notice
from apps.providers.push.settings import Settings
from apps.providers.push.token import MOST_BYTES, TokenSource
from apps.providers.reading import typed

_EXPIRED: Final = frozenset({None, "UNAUTHENTICATED"})
"""Codes of a 401 that is about our token; others are about the keys of Apple's service."""
_CONNECT_S: Final = 5.0


class _Sent(msgspec.Struct):
    name: str


class Client:
    """Sends notices for one project."""

    def __init__(
        self, settings: Settings, http: httpx.AsyncClient, *, now: Callable[[], float] = time.time
    ) -> None:
        """`now` is the clock by which tokens expire."""
        self._settings, self._tokens = settings, TokenSource(settings, http, now)
        self._exchange = Exchange(
            "firebase", http, settings.timeout_s, MOST_BYTES, unsent=Retryable, connect_s=_CONNECT_S
        )

    async def send(self, notice: Notice) -> str:
        """Send a notice; the name that Firebase gives it."""
        content = msgspec.json.encode({"message": notice.message()})
        token = await self._token()
        answer = await self._post(content, token)
        code = None if answer.is_success else code_of(answer.body)
        if answer.status == 401 and code in _EXPIRED:
            self._tokens.drop(token)
            answer = await self._post(content, await self._token())
            code = None if answer.is_success else code_of(answer.body)
        if not answer.is_success:
            raise refusal(answer, code)
        unreadable = UnknownOutcome("firebase's answer cannot be read")
        return typed(answer.body, _Sent, unreadable).name

    async def _token(self) -> str:
        """However many wait for one, and whatever the service does: no message was sent."""
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                return await self._tokens.token()
        except TimeoutError:
            raise Retryable("the token service did not answer in time") from None

    async def _post(self, content: bytes, token: str) -> Answer:
        settings = self._settings
        return await self._exchange.ask(
            "POST",
            f"{settings.base_url.rstrip('/')}/v1/projects/{settings.project_id}/messages:send",
            unclear=UnknownOutcome,
            content=content,
            headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
        )
