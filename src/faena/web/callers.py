"""How often callers of the API may ask, and how many streams they may read.

Counted in the process that serves them: with several processes a caller has this in each.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

from faena.errors import ConfigError
from faena.limits import Limit
from faena.options.fields import check_is

USUAL_RATE: Final = "600/min"
_MOST_CALLERS: Final = 10_000
_MOST_STREAMS: Final = 20


class Callers:
    """The callers of one dashboard's API."""

    def __init__(self, rate: str, clock: Callable[[], float] = time.monotonic) -> None:
        check_is("api_rate", rate, str)
        limit = Limit(rate)
        if limit.cost is not None:
            raise ConfigError("api_rate must be a number of requests per time", field="api_rate")
        self._most = float(limit.max)
        self._per_s = limit.max * 1e6 / limit.per_us
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Requests that are left, and when that was so; those who asked last come last."""
        self._streams: Counter[str] = Counter()

    def wait_s(self, name: str) -> float:
        """Count a request; how long its sender has to wait before it is answered, 0: not at all."""
        now = self._clock()
        left, at = self._left.pop(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._per_s)
        is_open = left >= 1
        self._left[name] = (left - 1 if is_open else left, now)
        if len(self._left) > _MOST_CALLERS:
            self._left.popitem(last=False)
        return 0.0 if is_open else (1 - left) / self._per_s

    def begin_stream(self, name: str) -> bool:
        """Whether there is room for one more stream of this caller; it counts until it ends."""
        if self._streams[name] >= _MOST_STREAMS:
            return False
        self._streams[name] += 1
        return True

    def end_stream(self, name: str) -> None:
        """One has ended."""
        self._streams[name] -= 1
        if self._streams[name] <= 0:
            del self._streams[name]
