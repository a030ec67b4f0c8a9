"""A small HTTP/1.1 client: one connection of one virtual user, kept open between requests.

A thousand users share two cores with the system that they use, so a request must cost little: this
one is a write and two reads. It knows answers with a Content-Length only.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_UNREACHABLE: Final = (OSError, EOFError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


class Unanswered(Exception):
    """No answer came: nobody knows whether the request was carried out."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """Makes one request after another; opens itself anew when the server has closed it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> Answer:
        """The answer, or Unanswered."""
        lines = [f"{method} {path} HTTP/1.1", f"host: {self._host}:{self._port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append(f"content-length: {len(body)}\r\n\r\n")
        request = "\r\n".join(lines).encode("latin-1") + body
        is_used = self._streams is not None
        try:
            return await self._exchange(request)
        except _UNREACHABLE as error:
            self.close()
            if not is_used:
                raise Unanswered(str(error)) from error
        try:  # the server closes connections that are idle: that says nothing about the request
            return await self._exchange(request)
        except _UNREACHABLE as error:
            self.close()
            raise Unanswered(str(error)) from error

    async def _exchange(self, request: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(int(head[0].split(" ", 2)[1]), headers, body)

    def close(self) -> None:
        """Close it; the next request opens it again."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
