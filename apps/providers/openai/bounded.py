"""A transport that sends through a shared client, and gives up on answers that do not end.

The SDK reads answers whole, and closes its HTTP client with itself. This stands between: answers
have a bound, and the shared client stays open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import httpx

MOST_BYTES: Final = 8 * 2**20
"""Of an answer: a hundred times what a model can say."""

_DECODED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class BoundedTransport(httpx.AsyncBaseTransport):
    """Requests go through `http`; answers beyond `most` bytes are a protocol error."""

    def __init__(self, http: httpx.AsyncClient, most: int = MOST_BYTES) -> None:
        self._http, self._most = http, most

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; redirects are answers like others, so no key follows one."""
        response = await self._http.send(request, stream=True, follow_redirects=False)
        headers = [one for one in response.headers.multi_items() if one[0] not in _DECODED]
        return httpx.Response(
            response.status_code, headers=headers, stream=_Bounded(response, self._most)
        )


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, response: httpx.Response, most: int) -> None:
        self._response, self._most = response, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """What was compressed counts as it is unpacked."""
        left = self._most
        async for chunk in self._response.aiter_bytes():
            left -= len(chunk)
            if left < 0:
                raise httpx.RemoteProtocolError("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()
