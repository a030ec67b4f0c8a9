"""The scripts of upstreams, each one call. All of them live together, in a shard of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.engine import Engine
from faena.engine.scripts import OVERTAKEN, texts
from faena.errors import InternalError

SHARD: Final = "@resilience"
"""No queue can have this name."""

_UNDECLARED: Final = b"UNDECLARED"
_packed = msgspec.msgpack.Encoder().encode


class Report(NamedTuple):
    """Calls that have ended, of one upstream and tenant."""

    upstream: str
    tenant: str = ""
    calls: int = 0
    failed: int = 0
    slow: int = 0
    wait_us: int = 0
    """How long the upstream asked not to be called; 0 for none."""
    probes: Sequence[Any] = ()
    """Permits of probes that have ended, each with GOOD, BAD or VOID behind it."""


BAD, GOOD, VOID = 0, 1, 2

GOOD_FOR_US: Final = 50_000
"""How long permits are good that were granted in advance."""
CALL_WITHIN_US: Final = 1_000_000
"""How long a job's permit is good for its call at most, where there are limits."""


def call_within_us(shortest_us: int) -> int:
    """How long that is, if the shortest window of a limit has this length: a twentieth of it. The
    windows count permits for so much longer, because a call may begin at any moment until then."""
    return max(GOOD_FOR_US, min(CALL_WITHIN_US, shortest_us // 20))


class Ask(NamedTuple):
    """Some jobs of one tenant, each of which needs all of the upstreams."""

    upstreams: Sequence[str]
    tenant: str
    number: int
    stem: str
    """What their permits' names begin with."""
    advance: int = 0
    """How many permits are wanted beyond these, to be used within GOOD_FOR_US."""
    estimates: Sequence[int] = ()
    """What a call to each of the upstreams costs at most, in millionths; empty: nothing."""
    lasting_us: int = 0
    """After which their holder is taken for dead, and what is reserved comes back."""


class Settled(NamedTuple):
    """Calls of a lot, which are those of one grant, that have ended."""

    lot: str
    ended: int
    """How many of them; what was reserved for these comes back."""
    tenant: str
    task: str
    costs: Sequence[Any]
    """Upstream, and what its calls have cost in millionths, in turns."""


class Grant(NamedTuple):
    """How many of them may call now, and what refused the others."""

    number: int
    is_probe: bool
    upstream: str
    reason: str
    wait_us: int
    """After which to ask again; 0 when it cannot be told."""
    advance: int = 0
    """How many permits there are beyond these."""
    is_soft: bool = False
    """Whether a budget is used up so far that calls should be frugal."""


class Undeclared(Exception):
    """The server does not know these upstreams: it is new, or has lost data."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


async def declare(engine: Engine, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the settings of upstreams that code gives."""
    flat = [part for name, one in settings.items() for part in (name, _packed(one))]
    await engine.ask("declare_upstreams", SHARD, *flat)


class Admitted(NamedTuple):
    """The answer to reports and questions."""

    grants: list[Grant]
    """One for each question."""
    turned: list[Turned]
    """Breakers whose state has changed with this call."""


class Turned(NamedTuple):
    """A breaker that is in another state now."""

    upstream: str
    tenant: str
    """Empty for a breaker of all calls."""
    state: str


async def admit(
    engine: Engine,
    caller: str,
    turn: str,
    reports: Sequence[Report],
    asks: Sequence[Ask],
    settled: Sequence[Settled] = (),
) -> Admitted:
    """Report and ask in one call; Undeclared, with nothing done, where settings are missing."""
    packed = {"reports": _packed(reports), "settled": _packed(settled), "asks": _packed(asks)}
    now, *rows = await engine.ask("admit", SHARD, caller=caller, turn=turn, **packed)
    if now == _UNDECLARED:
        raise Undeclared([name.decode() for name in rows])
    if now == OVERTAKEN:
        raise InternalError("a later call of this caller was answered already")
    return Admitted([_grant(now, *row) for row in rows[1:]], _turned(rows[0]))


class Pending(NamedTuple):
    """What time alone will end, unless something happens before."""

    scope: str
    """An upstream, or upstream/@tenant."""
    what: str
    """`recovering` or `panic`."""
    wait_us: int


class Swept(NamedTuple):
    """The answer to a sweep."""

    cursor: str
    """Of the next page of breakers that are not closed; `0` at the end."""
    pending: list[Pending]


async def sweep(engine: Engine, scopes: Sequence[str], cursor: str = "") -> Swept:
    """End what is over of these breakers and panics, and of a page of those in trouble."""
    at, *flat = await engine.ask("sweep_breakers", SHARD, *scopes, cursor=cursor)
    rows = zip(texts(flat[::3]), texts(flat[1::3]), flat[2::3], strict=True)
    return Swept(at.decode(), [Pending(*row) for row in rows])


def _turned(flat: Sequence[bytes]) -> list[Turned]:
    words = texts(flat)
    scopes = [scope.partition("/@") for scope in words[::2]]
    return [
        Turned(name, tenant, state)
        for (name, _, tenant), state in zip(scopes, words[1::2], strict=True)
    ]


def _grant(now: int, *row: Any) -> Grant:
    number, is_probe, upstream, reason, again_at, more, is_soft = row
    wait_us, why = max(0, again_at - now), (upstream.decode(), reason.decode())
    return Grant(number, bool(is_probe), *why, wait_us, more, bool(is_soft))
