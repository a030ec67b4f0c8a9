"""What a broker says about itself, gathered without needing more rights than it grants.

Managed services hide CONFIG; then INFO tells most of the same, and what neither shows is None.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from faena.engine.wire.address import Node
from faena.engine.wire.wire import Wire
from faena.errors import ScriptError, StoreRejected

_SAMPLES = 21
_SETTINGS = ("maxmemory-policy", "appendonly", "appendfsync", "maxmemory", "maxclients", "timeout")


class Probe(NamedTuple):
    """A script that is no part of the engine: it touches no job."""

    name: str
    body: str
    flags: str = ""

    @property
    def function(self) -> str:
        return f"faena_{self.name}"

    @property
    def source(self) -> str:
        return f"#!lua flags={self.flags}\n{self.body}"

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    @property
    def library(self) -> str:
        flags = f"'{self.flags}'" if self.flags else ""
        return (
            f"#!lua name={self.function}\n"
            f"redis.register_function{{ function_name = '{self.function}', flags = {{ {flags} }}, "
            f"callback = function(KEYS) {self.body} end }}"
        )


TIME = Probe("probe_time", "return redis.call('TIME')", "no-writes")
WRITE = Probe("probe_write", "return redis.call('SET', KEYS[1], '', 'PX', 1000)")


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """The state of one node at one moment."""

    node: Node
    info: dict[str, str]
    config: dict[str, str]  # empty where the user may not see it
    latency_ms: float  # median of script round trips
    clock_ms: float  # server's clock minus ours

    @property
    def eviction(self) -> str | None:
        return self.config.get("maxmemory-policy") or self.info.get("maxmemory_policy")

    def number(self, name: str) -> int | None:
        """A setting, else the field of INFO of the same name."""
        text = self.config.get(name) or self.info.get(name)
        return int(text) if text and text.isdigit() else None


async def read_broker(
    wire: Wire, node: Node, *, clock: Callable[[], float] = time.time
) -> BrokerInfo:
    """Measure one node; raises a StoreError where it cannot be reached."""
    latency_ms, clock_ms = await _time(wire, node, clock)
    return BrokerInfo(
        node=node,
        info=await read_info(wire, node),
        config=await _read_config(wire, node),
        latency_ms=latency_ms,
        clock_ms=clock_ms,
    )


async def read_eviction(wire: Wire, node: Node, patience_s: float = 0.0) -> str | None:
    """The eviction policy of a node; None where it is hidden."""
    config = await _read_config(wire, node, patience_s)
    if policy := config.get("maxmemory-policy"):
        return policy
    return (await read_info(wire, node, patience_s)).get("maxmemory_policy")


async def read_info(wire: Wire, node: Node, patience_s: float = 0.0) -> dict[str, str]:
    """INFO as a mapping; empty where it is hidden."""
    try:
        text = await wire.call("INFO", node=node, patience_s=patience_s)
    except (StoreRejected, ScriptError) as error:
        return _hidden(error)
    return parse_fields(text)


def parse_fields(text: bytes) -> dict[str, str]:
    """The `name:value` lines of INFO and CLUSTER INFO."""
    pairs = (line.partition(":") for line in text.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in pairs}


async def _read_config(wire: Wire, node: Node, patience_s: float = 0.0) -> dict[str, str]:
    try:
        reply = await wire.call("CONFIG", "GET", *_SETTINGS, node=node, patience_s=patience_s)
    except (StoreRejected, ScriptError) as error:
        return _hidden(error)
    words = [word.decode() for word in reply]
    return dict(zip(words[::2], words[1::2], strict=True))


def _hidden(error: StoreRejected | ScriptError) -> dict[str, str]:
    """Nothing, for a command that this user may not run; another refusal is one of them all."""
    if isinstance(error, StoreRejected) and "NOPERM" not in str(error):
        raise error
    return {}


async def _time(wire: Wire, node: Node, clock: Callable[[], float]) -> tuple[float, float]:
    """Median round trip, and the clock difference as the quickest round trip shows it."""
    trips: list[tuple[float, float]] = []
    for _ in range(_SAMPLES):
        sent, began = clock(), time.perf_counter()
        seconds, micros = await wire.run(TIME, (), (), patience_s=0, node=node)
        trip_s = time.perf_counter() - began
        there = int(seconds) + int(micros) / 1e6
        trips.append((trip_s, there - (sent + trip_s / 2)))
    ordered = sorted(trips)
    return ordered[_SAMPLES // 2][0] * 1000, ordered[0][1] * 1000
