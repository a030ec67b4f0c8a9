"""Loads the script library into a server that does not have it, and sends the request again.

A server loses its libraries with its data. One at its maxmemory takes none, and one whose user may
not use functions neither: such a request is sent as a plain script.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hiredis

from faena.engine.wire import faults
from faena.engine.wire.link import Link, pack
from faena.engine.wire.request import Request, Script


class Resending:
    """Sends a request with a script again over the same link."""

    def __init__(self, request: Request, link: Link, timeout_s: float, *, is_asking: bool) -> None:
        self._request = request
        self._link = link
        self._timeout_s = timeout_s
        self._is_asking = is_asking

    async def if_missing(self, replies: list[Any]) -> list[Any]:
        """The replies; those of a second attempt if the server could not call the script."""
        script = self._request.script
        if script is None:
            return replies
        if faults.is_missing_script(replies[0]):
            return await self._load_and_send(script)
        if faults.lacks_functions(replies[0]):
            return await self._send_plainly(script) or replies
        return replies

    async def _load_and_send(self, script: Script) -> list[Any]:
        """Load the library; a full server refuses it, and gets the plain script instead."""
        if _head("EVALSHA", script.sha) in self._request.data:
            return await self._send_source(script)
        load = pack(("FUNCTION", "LOAD", "REPLACE", script.library))
        (loaded,) = await self._link.ask(load, 1, self._timeout_s)
        if faults.is_full(loaded):
            return await self._send_source(script)
        if faults.lacks_functions(loaded):
            return await self._send_plainly(script) or [loaded]
        if isinstance(loaded, hiredis.ReplyError):
            raise loaded
        return await self._send(self._request)

    async def _send_plainly(self, script: Script) -> list[Any] | None:
        """From now on without functions; None where plain scripts are refused as well."""
        replies = await self._send_source(script)
        if faults.refuses_scripts(replies[0]):
            return None
        self._request.dialect.is_plain = True
        return replies

    async def _send_source(self, script: Script) -> list[Any]:
        data = self._request.data
        for call in (("FCALL", script.function), ("EVALSHA", script.sha)):
            data = data.replace(_head(*call), _head("EVAL", script.source), 1)
        return await self._send(replace(self._request, data=data))

    async def _send(self, request: Request) -> list[Any]:
        return await request.send(self._link, self._timeout_s, is_asking=self._is_asking)


def _head(command: str, first: str) -> bytes:
    """How a packed command goes on after the number of its words."""
    return b"\r\n" + pack((command, first)).split(b"\r\n", 1)[1]
