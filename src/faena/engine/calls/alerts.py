"""Alerts on the broker: whose turn it is to judge, what was judged, silences. They live with the
upstreams. Each method is one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.calls.resilience import SHARD
from faena.engine.engine import Engine
from faena.engine.scripts import once, texts
from faena.errors import InternalError, StoreRejected

Totals = Mapping[str, int]

QUIET: Final = 8
"""How many intervals there may be between two turns while nothing happens."""

LEVELS: Final = ("", "warning", "critical")


class Reading(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What was read of one alert, and how it is judged; `alert_level.lua` explains the fields."""

    rule: str
    subject: str
    value: float
    text: str
    """The value in words, for notices."""
    warning: float = -1
    critical: float = -1
    """The bounds; -1 for none."""
    ease_warning: float = -1
    ease_critical: float = -1
    sustained_us: int = 0
    clear_after_us: int = 0
    repeat_us: int = 0
    channels: Sequence[str] = ()
    critical_channels: Sequence[str] = ()

    @property
    def about(self) -> str:
        """The alert that it is about."""
        return f"{self.rule} {self.subject}"


class Change(msgspec.Struct, array_like=True, frozen=True):
    """One alert in a notice."""

    kind: str
    """firing, escalated, eased, resolved or repeated."""
    rule: str
    subject: str
    severity: str
    since: int
    """When it began to fire."""
    text: str


class Notice(msgspec.Struct, array_like=True, frozen=True):
    """What one channel is told after one evaluation."""

    channel: str
    severity: str
    at: int
    changes: list[Change]


class Past(msgspec.Struct, array_like=True, frozen=True):
    """A change of an alert's level."""

    at: int
    kind: str
    rule: str
    subject: str
    severity: str
    since: int
    text: str
    is_silenced: bool


class Stored(msgspec.Struct, frozen=True, rename={"level": "l", "pending": "w", "critical": "c"}):
    """An alert under way."""

    level: float = 0
    pending: float = 0
    critical: float = 0
    s: float = 0
    x: str = ""
    a: float = 0


class StoredSilence(msgspec.Struct, frozen=True):
    """A silence: rule, subject, until, since, by, reason."""

    r: str
    s: str
    u: float
    a: float
    b: str
    y: str


class Turn(NamedTuple):
    """A turn to judge all alerts."""

    token: str
    under_way: frozenset[str]
    lately: Mapping[str, Totals]
    """Queue → its totals five minutes ago, or when it was first seen since then."""
    hour_ago: Mapping[str, Totals]


class Found(NamedTuple):
    """All that is stored."""

    now: int
    alerts: Mapping[str, Stored]
    silences: Mapping[str, StoredSilence]
    history: Sequence[Past]
    undelivered: int


_packed = msgspec.msgpack.Encoder().encode
_notice = msgspec.msgpack.Decoder(Notice).decode
_past = msgspec.msgpack.Decoder(Past).decode
_stored = msgspec.msgpack.Decoder(Stored).decode
_silence = msgspec.msgpack.Decoder(StoredSilence).decode
_totals = msgspec.msgpack.Decoder(dict[str, int]).decode


class AlertCalls:
    """The calls of one set of rules."""

    def __init__(self, engine: Engine, rule_set: str = "", *, interval_us: int = 0) -> None:
        """`rule_set` tells programs with other rules, queues or channels apart."""
        self._engine, self._set, self._interval_us = engine, rule_set, interval_us
        self._lease_us = max(2 * interval_us, 10_000_000)

    async def begin(self, token: str, queues: Sequence[str]) -> Turn | int:
        """A turn; or how many microseconds to wait, if another program has it or had it lately."""
        longest_us = max(self._lease_us, QUIET * self._interval_us)
        named: dict[str, Any] = {"set": self._set, "token": token, "longest_us": longest_us}
        named["lease_us"] = self._lease_us
        wait, *rest = await self._engine.ask("begin_alerts", SHARD, *queues, **named)
        if not rest:
            return int(wait)
        names, lately, hour_ago = rest
        return Turn(token, frozenset(texts(names)), _by_queue(lately), _by_queue(hour_ago))

    async def evaluate(
        self,
        turn: Turn,
        readings: Sequence[Reading],
        totals: Mapping[str, Totals],
        wait_us: int | None = None,
    ) -> dict[str, Notice] | None:
        """Judge; returns all notices that are no jobs yet, or None if the turn is over.

        The next turn is after `wait_us`, by default an interval.
        """
        flat = [part for name, one in totals.items() for part in (name, _packed(one))]
        wait_us = self._interval_us if wait_us is None else wait_us
        named = {"set": self._set, "token": turn.token, "wait_us": wait_us}
        reply = await self._engine.ask(
            "evaluate_alerts", SHARD, *flat, readings=_packed(readings), **named
        )
        if reply == [b"STALE"]:
            return None
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return {name.decode(): _notice(packed) for name, packed in pairs}

    async def sent(self, notices: Sequence[str]) -> None:
        """These are jobs now."""
        await self._engine.command("HDEL", SHARD, "alert_notices", *notices)

    async def look(self, most: int) -> Found:
        """All alerts under way, the silences, and the last `most` changes."""
        now, alerts, silences, history, undelivered = await self._engine.ask(
            "alerts", SHARD, most=most
        )
        return Found(
            now=now,
            alerts={a.decode(): _stored(b) for a, b in _paired(alerts)},
            silences={a.decode(): _silence(b) for a, b in _paired(silences)},
            history=[_past(one) for one in history],
            undelivered=undelivered,
        )

    async def silence(self, silence: str, duration_us: int, **what: str) -> None:
        """Begin one under a fresh id; `what` is rule, subject, by and reason."""
        named: dict[str, Any] = {"verb": "begin", "id": silence, "duration_us": duration_us}
        if await self._silence(**named, **what) == b"FULL":
            raise StoreRejected("there must be at most 1000 silences, got one more", op="silence")

    async def unsilence(self, silence: str, *, by: str) -> bool:
        """End one; False if there is none."""
        return bool(await self._silence(verb="end", id=silence, by=by) == 1)

    async def _silence(self, **named: Any) -> Any:
        reply = await self._engine.ask("silence", SHARD, **once("silence"), **named)
        if reply == b"OVERTAKEN":
            raise InternalError("a later call of this caller was answered already")
        return reply


def _paired(flat: Sequence[bytes]) -> zip[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _by_queue(flat: Sequence[bytes]) -> dict[str, Totals]:
    return {name.decode(): _totals(packed) for name, packed in _paired(flat)}
