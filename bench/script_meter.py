"""The server's own histograms of how long calls take."""

from __future__ import annotations

from typing import NamedTuple

import redis

PERCENTILES = ("50", "99", "99.9", "100")


class Figures(NamedTuple):
    """One operation: how often it was called, and the server's percentiles in microseconds."""

    name: str
    calls: int
    p50: float
    p99: float
    p999: float
    worst: float


class Meter:
    """Reads the histogram of FCALL since the last reset."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url, protocol=2)
        self._client.config_set("latency-tracking-info-percentiles", " ".join(PERCENTILES))

    def reset(self) -> None:
        self._client.config_resetstat()

    def read(self, name: str) -> Figures:
        told = self._client.info("latencystats")["latency_percentiles_usec_fcall"]
        calls = self._client.info("commandstats")["cmdstat_fcall"]["calls"]
        return Figures(name, calls, *(float(told[f"p{one}"]) for one in PERCENTILES))

    def close(self) -> None:
        self._client.close()
