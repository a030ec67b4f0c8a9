"""The scripts of features and levels, each one call. They live with the upstreams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from faena.engine.calls.resilience import SHARD
from faena.engine.engine import Engine
from faena.engine.scripts import once
from faena.errors import InternalError

_packed = msgspec.msgpack.Encoder().encode


class Source(msgspec.Struct, array_like=True, frozen=True):
    """One thing that says how a feature is."""

    source: str
    """`operator`, `check`, or what it is and which one: `breaker:afip`, `level:black-friday`."""
    state: str
    message: str
    since: int
    until: int
    """0 for one that does not end by itself."""
    by: str
    reason: str


class FeatureRow(msgspec.Struct, array_like=True, frozen=True):
    """A feature as the server knows it."""

    name: str
    is_critical: bool
    fallback: str
    message: str
    state: str
    """As it was told last."""
    since: int
    """0 if it has never changed."""
    sources: list[Source]


class LevelRow(msgspec.Struct, array_like=True, frozen=True):
    """A level as the server knows it."""

    name: str
    rules: list[tuple[str, str]]
    is_on: bool
    message: str
    since: int
    until: int
    by: str


class Seen(msgspec.Struct, array_like=True, frozen=True):
    """All features and levels at one instant."""

    now: int
    next_at: int
    """When time alone changes the next state; 0 for never."""
    features: list[FeatureRow]
    levels: list[LevelRow]


_read = msgspec.msgpack.Decoder(Seen).decode


class Unknown(Exception):
    """The server does not know this feature or level: it is new, or has lost data."""


class FeatureCalls:
    """The calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def declare(
        self, features: Mapping[str, Mapping[str, Any]], levels: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Write what code says of features and levels."""
        named = {f"f:{name}": one for name, one in features.items()}
        named |= {f"l:{name}": one for name, one in levels.items()}
        flat = [part for field, one in named.items() for part in (field, _packed(one))]
        await self._engine.ask("declare_features", SHARD, *flat)

    async def look(self) -> Seen:
        """Everything, brought up to date."""
        return _read(await self._engine.ask("features", SHARD))

    async def set(
        self, name: str, state: str, *, message: str = "", duration_us: int | None = None, by: str
    ) -> bool:
        """Set a state by hand; without one, end what was set, and False if nothing was."""
        named = {"name": name, "state": state, "message": message, "by": by}
        reply = await self._engine.ask(
            "set_feature", SHARD, **once("set_feature"), **named, duration_us=duration_us
        )
        return _changed(reply)

    async def switch(
        self, name: str, to: str, *, message: str = "", duration_us: int | None = None, by: str
    ) -> bool:
        """Switch a level `on` or `off`; False if it was off already."""
        named = {"name": name, "to": to, "message": message, "by": by}
        reply = await self._engine.ask(
            "switch_level", SHARD, **once("switch_level"), **named, duration_us=duration_us
        )
        return _changed(reply)

    async def forget(self, kind: str, name: str, *, by: str) -> None:
        """Remove a `feature` or a `level`, and what was set by hand."""
        named = {"kind": kind, "name": name, "by": by}
        _changed(await self._engine.ask("forget_feature", SHARD, **once("forget"), **named))

    async def begin_check(self, name: str, owner: str, lease_us: int) -> int:
        """0 if this owner runs a check now, else how long to wait before asking again."""
        named = {"name": name, "owner": owner, "lease_us": lease_us}
        return int(await self._engine.ask("begin_check", SHARD, **named))

    async def end_check(
        self, name: str, owner: str, problem: str | None, *, every_us: int, failures: int
    ) -> bool:
        """Tell how a check ended, None for well; False if another owner runs it by then."""
        named: dict[str, Any] = {"name": name, "owner": owner, "message": problem}
        named |= {"is_good": "1" if problem is None else "", "failures": failures}
        reply = await self._engine.ask("end_check", SHARD, every_us=every_us, **named)
        return bool(reply == 1)


def _changed(reply: Any) -> bool:
    if reply == b"UNKNOWN":
        raise Unknown
    if reply == b"OVERTAKEN":
        raise InternalError("a later call of this caller was answered already")
    return bool(reply == 1)
