"""What travels over a link in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import hiredis

from faena.engine import faults
from faena.engine.address import Node
from faena.engine.faults import Verdict
from faena.engine.link import Link, pack

ASKING = pack(("ASKING",))

Argument = str | bytes | int | float
Key = str | bytes


class Script(Protocol):
    """What the wire needs to know of a script."""

    @property
    def name(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def library(self) -> str: ...
    @property
    def source(self) -> str: ...


@dataclass(slots=True)
class Request:
    """Packed commands that travel together, and what to expect of them."""

    op: str
    data: bytes
    replies: int
    timeout_s: float  # of silence in one attempt
    slot: int | None = None
    node: Node | None = None  # for whom it is meant, when not for the owner of the slot
    script: Script | None = None  # to be loaded where it is missing

    async def ask_elsewhere(self, link: Link, timeout_s: float) -> list[Any]:
        """Send it to the node that a slot is on its way to."""
        return await self._send(link, (ASKING,), timeout_s)

    async def checked(
        self, replies: list[Any], link: Link, timeout_s: float, diverted: Node | None
    ) -> list[Any]:
        """The replies, of a second attempt where the script was missing.

        An error that the attempt as a whole failed with is raised.
        """
        prefix = () if diverted is None else (ASKING,)
        if self.script is not None and faults.is_missing_script(replies[0]):
            replies = await self._load_and_send(link, self.script, prefix, timeout_s)
        if isinstance(replies[0], hiredis.ReplyError):
            raise replies[0]
        for reply in replies[1:]:
            # A wait that a failover or a moving slot cut short is worth another attempt; one that
            # the server does not offer is the caller's to know.
            if isinstance(reply, hiredis.ReplyError) and faults.judge(reply) in _TEMPORARY:
                raise reply
        return replies

    async def _load_and_send(
        self, link: Link, script: Script, prefix: Sequence[bytes], timeout_s: float
    ) -> list[Any]:
        """A full server takes in no library, yet must be emptied: it gets the script itself."""
        load = pack(("FUNCTION", "LOAD", "REPLACE", script.library))
        (loaded,) = await link.ask(load, 1, timeout_s)
        if faults.is_full(loaded):
            call, plain = _head("FCALL", script.function), _head("EVAL", script.source)
            bare = replace(self, data=self.data.replace(call, plain, 1))
            return await bare._send(link, prefix, timeout_s)  # noqa: SLF001 - its own kind
        if isinstance(loaded, hiredis.ReplyError):
            raise loaded
        return await self._send(link, prefix, timeout_s)

    async def _send(self, link: Link, prefix: Sequence[bytes], timeout_s: float) -> list[Any]:
        if not prefix:
            return await link.ask(self.data, self.replies, timeout_s)
        data = b"".join((*prefix, self.data))
        replies = await link.ask(data, len(prefix) + self.replies, timeout_s)
        for reply in replies[: len(prefix)]:
            if isinstance(reply, hiredis.ReplyError):
                raise reply
        return replies[len(prefix) :]


def _head(command: str, first: str) -> bytes:
    """How a packed command goes on after the number of its words."""
    return b"\r\n" + pack((command, first)).split(b"\r\n", 1)[1]


_TEMPORARY = frozenset({Verdict.WAIT, Verdict.LOOK, Verdict.MOVED, Verdict.ASK})
