"""A request: commands that are sent together over a link."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
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
    is_enough: Callable[[Any], bool] | None = None  # a first reply after which no other matters

    async def send(self, link: Link, timeout_s: float, *, is_asking: bool = False) -> list[Any]:
        """The replies; with `is_asking`, those of the node that a slot is on its way to."""
        if not is_asking:
            return await link.ask(self.data, self.replies, timeout_s, is_enough=self.is_enough)
        asked, *replies = await link.ask(ASKING + self.data, 1 + self.replies, timeout_s)
        if isinstance(asked, hiredis.ReplyError):
            raise asked
        return replies


def check_replies(replies: Sequence[Any]) -> None:
    """Raise the error that an attempt as a whole failed with."""
    if isinstance(replies[0], hiredis.ReplyError):
        raise replies[0]
    for reply in replies[1:]:
        # A wait that a failover or a moving slot cut short is worth another attempt; one that
        # the server does not offer is the caller's to know.
        if isinstance(reply, hiredis.ReplyError) and faults.judge(reply) in _TEMPORARY:
            raise reply


_TEMPORARY = frozenset({Verdict.WAIT, Verdict.LOOK, Verdict.MOVED, Verdict.ASK})
