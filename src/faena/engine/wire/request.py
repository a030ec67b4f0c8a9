"""A request: commands that are sent together over a link."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import hiredis

from faena.engine.wire import faults
from faena.engine.wire.address import Node
from faena.engine.wire.faults import Verdict
from faena.engine.wire.link import Link, pack
from faena.errors import ArgumentError, shown
from faena.values.names import is_utf8

ASKING = pack(("ASKING",))

Argument = str | bytes | int | float
Key = str | bytes

_INT64: Final = 2**63


def check_arguments(args: Iterable[Argument]) -> None:
    """Refuse values that the packer cannot take: a too large int would crash the process.

    Callers check their arguments before, with better messages; this is the last check.
    """
    for one in args:
        if isinstance(one, str):
            is_fit = is_utf8(one)
        elif type(one) is int:
            is_fit = -_INT64 <= one < _INT64
        else:
            is_fit = isinstance(one, bytes | bytearray | memoryview | float)
        if not is_fit:
            raise ArgumentError(
                f"an argument must be a UTF-8 string, bytes or a 64-bit number, got {shown(one)}",
                value=one,
            )


class Script(Protocol):
    """The parts of a script that the wire needs."""

    @property
    def name(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def library(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def sha(self) -> str: ...


class Dialect:
    """How scripts are called: as functions, or with EVALSHA if the user may not use functions.

    The first refusal decides for the whole wire, because its servers are of one kind.
    """

    def __init__(self) -> None:
        self.is_plain = False

    def call(self, script: Script) -> tuple[str, str]:
        """How the command begins."""
        return ("EVALSHA", script.sha) if self.is_plain else ("FCALL", script.function)


@dataclass(slots=True)
class Request:
    """Packed commands that are sent together, and how to read their replies."""

    op: str
    data: bytes
    replies: int
    timeout_s: float  # of silence in one attempt
    slot: int | None = None
    node: Node | None = None  # for whom it is meant, when not for the owner of the slot
    script: Script | None = None  # to be loaded where it is missing
    dialect: Dialect = field(default_factory=Dialect)

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
        if self.script is not None:
            if faults.is_missing_script(replies[0]):
                replies = await self._load_and_send(link, self.script, prefix, timeout_s)
            elif faults.lacks_functions(replies[0]):
                replies = await self._send_plainly(link, self.script, prefix, timeout_s) or replies
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
        """Load the library; a full server refuses it, and gets the plain script instead."""
        if _head("EVALSHA", script.sha) in self.data:
            return await self._send_source(link, script, prefix, timeout_s)
        load = pack(("FUNCTION", "LOAD", "REPLACE", script.library))
        (loaded,) = await link.ask(load, 1, timeout_s)
        if faults.is_full(loaded):
            return await self._send_source(link, script, prefix, timeout_s)
        if faults.lacks_functions(loaded):
            return await self._send_plainly(link, script, prefix, timeout_s) or [loaded]
        if isinstance(loaded, hiredis.ReplyError):
            raise loaded
        return await self._send(link, prefix, timeout_s)

    async def _send_plainly(
        self, link: Link, script: Script, prefix: Sequence[bytes], timeout_s: float
    ) -> list[Any] | None:
        """From now on without functions; None where plain scripts are refused as well."""
        replies = await self._send_source(link, script, prefix, timeout_s)
        if faults.refuses_scripts(replies[0]):
            return None
        self.dialect.is_plain = True
        return replies

    async def _send_source(
        self, link: Link, script: Script, prefix: Sequence[bytes], timeout_s: float
    ) -> list[Any]:
        data = self.data
        for call in (("FCALL", script.function), ("EVALSHA", script.sha)):
            data = data.replace(_head(*call), _head("EVAL", script.source), 1)
        bare = replace(self, data=data)
        return await bare._send(link, prefix, timeout_s)  # noqa: SLF001 - its own kind

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
