"""One HTTP request and its answer: sent once, read up to a size, and what can be known if it fails.

Redirects are answers like others, so no credential follows one. Errors of httpx hold the request
with its credentials: they are told in words, and none stays behind ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

UNSENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
)
"""Errors of requests that did not leave."""
_LOST: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL)


class Unsent(Exception):
    """The request did not leave."""


class Unanswered(Exception):
    """The request may have arrived; no whole answer came."""


class TooLarge(Exception):
    """An answer has more bytes than any that makes sense."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whole."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def is_success(self) -> bool:
        """Whether the service did what it was asked."""
        return 200 <= self.status < 300

    @property
    def retry_after(self) -> str | None:
        """How long to wait, as it was said; None if it was not."""
        return self.headers.get("retry-after")


@dataclass(frozen=True, slots=True)
class Exchange:
    """Sends requests to one service."""

    service: str
    """As messages call it."""
    http: httpx.AsyncClient
    timeout_s: float
    """How long one request may take in all."""
    most_bytes: int
    """Of an answer, unpacked."""
    unsent: type[Exception] = Unsent
    """What is raised if a request did not leave."""
    connect_s: float | None = None
    """How long a connection may take: less than all, so that one which was never made is told from
    one without an answer. None: as long as all."""

    async def ask(
        self,
        method: str,
        url: str | httpx.URL,
        *,
        unclear: type[Exception] = Unanswered,
        **content: Any,
    ) -> Answer:
        """Send a request; `unclear` is raised if no whole answer comes. `content` is httpx's."""
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self._send(method, url, content)
        except TimeoutError:
            late = f"did not answer in full: no answer came within {self.timeout_s:g} s"
            problem = unclear(f"{self.service} {late}")
        except UNSENT as error:
            how = f"no connection could be made ({type(error).__name__})"
            problem = self.unsent(f"{self.service} could not be reached: {how}")
        except (*_LOST, TooLarge) as error:
            problem = unclear(f"{self.service} did not answer in full ({type(error).__name__})")
        raise problem  # here, so that the client's error is not its context

    async def _send(self, method: str, url: str | httpx.URL, content: Mapping[str, Any]) -> Answer:
        connect_s = self.timeout_s if self.connect_s is None else self.connect_s
        async with self.http.stream(
            method,
            url,
            timeout=httpx.Timeout(self.timeout_s, connect=connect_s),
            follow_redirects=False,
            **content,
        ) as response:
            body = await read_up_to(response, self.most_bytes)
            return Answer(response.status_code, response.headers, body)


async def read_up_to(response: httpx.Response, most: int) -> bytes:
    """The body, unless it is larger; what was compressed counts as it is unpacked."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > most:
            raise TooLarge
    return bytes(body)


class _WithoutQuery(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                one.copy_with(query=None) if isinstance(one, httpx.URL) else one
                for one in record.args
            )
        return True


_WITHOUT_QUERY: Final = _WithoutQuery()


def keep_queries_out_of_logs() -> None:
    """httpx logs the address of each request: from now on without the query, which may have a key
    or the number of a person."""
    logging.getLogger("httpx").addFilter(_WITHOUT_QUERY)  # adding it again does nothing
