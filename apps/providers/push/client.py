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

from apps.providers.push.errors import Retryable, UnknownOutcome
from apps.providers.push.exchange import code_of, read_answer, refusal
from apps.providers.push.notice import Notice
from apps.providers.push.settings import Settings
from apps.providers.push.token import TokenSource

_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
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
        self._settings, self._http = settings, http
        self._tokens = TokenSource(settings, http, now)

    async def send(self, notice: Notice) -> str:
        """Send a notice; the name that Firebase gives it."""
        content = msgspec.json.encode({"message": notice.message()})
        token = await self._token()
        response, body = await self._post(content, token)
        code = None if response.is_success else code_of(body)
        if response.status_code == 401 and code in _EXPIRED:
            self._tokens.drop(token)
            response, body = await self._post(content, await self._token())
            code = None if response.is_success else code_of(body)
        if not response.is_success:
            raise refusal(response, code)
        try:
            return msgspec.json.decode(body, type=_Sent).name
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise UnknownOutcome("firebase's answer cannot be read") from None

    async def _token(self) -> str:
        """However many wait for one, and whatever the service does: no message was sent."""
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                return await self._tokens.token()
        except TimeoutError:
            raise Retryable("the token service did not answer in time") from None

    async def _post(self, content: bytes, token: str) -> tuple[httpx.Response, bytes]:
        settings = self._settings
        path = f"/v1/projects/{settings.project_id}/messages:send"
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        try:
            async with (
                asyncio.timeout(settings.timeout_s),
                self._http.stream(
                    "POST",
                    settings.base_url.rstrip("/") + path,
                    content=content,
                    headers=headers,
                    timeout=httpx.Timeout(settings.timeout_s, connect=_CONNECT_S),
                    follow_redirects=False,
                ) as response,
            ):
                return response, await read_answer(response)
        except _UNSENT:
            raise Retryable("firebase could not be reached") from None
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
            raise UnknownOutcome("firebase did not answer in full") from None
