"""What a process knows of features: a copy that is renewed when the server says so, not polled.

A message may be lost with its connection, so the copy is renewed when a connection is new, and now
and then. What ends by time ends in the copy by itself; the first process that reads it from the
server then has the server tell the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from faena.engine import Engine
from faena.engine.calls.features import FeatureCalls, Seen, Unknown
from faena.engine.wire.subscription import Subscription
from faena.errors import ConfigError, FaenaError, unknown_name
from faena.resilience.feature_views import FeatureView, feature_at

_LOOK_S: Final = 30.0
_AFTER_ERROR_S: Final = 5.0

_log = logging.getLogger("faena.features")


class DeclaredFeatures:
    """What a program says of features and levels, by name."""

    def __init__(self) -> None:
        self.features: dict[str, Mapping[str, Any]] = {}
        self.levels: dict[str, Mapping[str, str]] = {}
        self.version = 0
        """Grows with every change."""

    def missing_in(self, seen: Seen) -> bool:
        """Whether the server has lost some of it."""
        features = {one.name for one in seen.features}
        return not (self.features.keys() <= features) or not (
            self.levels.keys() <= {one.name for one in seen.levels}
        )


class FeatureCopy:
    """The copy of one process, for all of its threads."""

    def __init__(self) -> None:
        self._seen: Seen | None = None
        self._now: Callable[[], int] = int
        self._keepers: set[object] = set()
        self._process = 0

    @property
    def is_kept(self) -> bool:
        """Whether a follower or a worker keeps it current."""
        return bool(self._keepers)

    def join(self, keeper: object) -> None:
        """This keeper renews it from now on."""
        self._keepers.add(keeper)

    def take(self, seen: Seen, now: Callable[[], int]) -> None:
        """What was seen; `now` is the server's time."""
        self._seen, self._now, self._process = seen, now, os.getpid()

    def leave(self, keeper: object) -> None:
        """This keeper renews it no more."""
        self._keepers.discard(keeper)
        if not self._keepers:
            self._seen = None

    def view(self, name: str) -> FeatureView:
        """One feature now."""
        seen = self._seen if self._process == os.getpid() else None  # none keeps a fork's current
        if seen is None:
            raise ConfigError(
                "features must be followed before their state is read without `await`: call "
                "`await app.features.follow()` when the program starts (workers do so themselves)",
                field="features",
            )
        row = next((one for one in seen.features if one.name == name), None)
        if row is None:
            raise ConfigError(
                f"feature must be followed again after {name} was declared: call "
                "`await app.features.follow()` behind all declarations",
                field="feature",
                value=name,
            )
        return feature_at(row, self._now())


class FeatureFollower:
    """Reads features on one event loop, and keeps the copy current while it is asked to."""

    def __init__(self, engine: Engine, declared: DeclaredFeatures, copy: FeatureCopy) -> None:
        self._engine = engine
        self.calls = FeatureCalls(engine)
        self._declared, self._copy = declared, copy
        self._version = 0
        self._notified = asyncio.Event()
        self._beginning = asyncio.Lock()
        self._subscription: Subscription | None = None
        self._task: asyncio.Task[None] | None = None

    async def look(self) -> Seen:
        """All features; what the server does not know of this program's is declared first."""
        if self._version != self._declared.version:
            await self.declare()
        seen = await self.calls.look()
        if self._declared.missing_in(seen):
            await self.declare()
            seen = await self.calls.look()
        return seen

    async def declare(self) -> None:
        """Write what this program says of them."""
        version = self._declared.version
        await self.calls.declare(self._declared.features, self._declared.levels)
        self._version = version

    async def apply(self, kind: str, name: str, change: Callable[[], Any]) -> bool:
        """Change a `feature` or a `level`; this process knows of it afterwards.

        The server may have lost one of this program's.
        """
        has_changed = await self._apply(kind, name, change)
        if self._copy.is_kept:
            await self.renew()
        return has_changed

    async def _apply(self, kind: str, name: str, change: Callable[[], Any]) -> bool:
        if self._version != self._declared.version:
            await self.declare()
        try:
            return bool(await change())
        except Unknown:
            await self.declare()
        try:
            return bool(await change())
        except Unknown:
            seen = await self.calls.look()
            known = [one.name for one in (seen.features if kind == "feature" else seen.levels)]
            raise unknown_name(kind, name, known, field=kind, value=name) from None

    # -- following ------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Keep the copy current until `close`; a second call only renews it."""
        async with self._beginning:
            if self._subscription is None:
                self._subscription = await self._engine.listen(features=self.notify)
                self._subscription.on_live = self.notify
            await self.begin()
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self.run())

    async def begin(self) -> None:
        """Read them into the copy; `run` keeps it current."""
        self._copy.join(self)
        await self.renew()

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._subscription is not None:
            await self._subscription.close()
        self._copy.leave(self)

    def notify(self, _shard: str = "", _name: str = "") -> None:
        """Something has changed, or may have."""
        self._notified.set()

    async def renew(self) -> Seen:
        """Read them into the copy."""
        self._notified.clear()  # before it reads: a change during that is not lost
        asked = time.monotonic()
        seen = await self.look()
        clock = self._engine.clock
        now = clock or (lambda: seen.now + round((time.monotonic() - asked) * 1e6))
        self._copy.take(seen, now)
        return seen

    async def run(self) -> None:
        """Renew the copy whenever something has changed, or time changes a state."""
        self._copy.join(self)
        try:
            while True:
                wait_s = await self.run_once()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._notified.wait()
        finally:
            self._copy.leave(self)

    async def run_once(self) -> float:
        """Renew the copy; after how many seconds to do so again, if nothing changes before."""
        try:
            seen = await self.renew()
        except FaenaError as error:
            if self._engine.wire.is_closed:
                raise  # this program closed it, and will not open it again
            _log.warning("could not read features, trying again: %s", error)
            return _AFTER_ERROR_S
        if not seen.next_at:
            return _LOOK_S
        return min(_LOOK_S, max(0, seen.next_at - seen.now) / 1e6)
