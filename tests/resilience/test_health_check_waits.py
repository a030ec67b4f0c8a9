"""A program that checks more often than the one before it does not wait for that one's pace."""

from __future__ import annotations

from typing import Any

from faena import Faena
from faena.resilience.health_check import HealthCheck, HealthChecker, HealthCheckOptions
from tests._support.rig import SECOND


class Calls:
    """A server that has noted a check for tomorrow."""

    async def begin_check(self, *_args: Any) -> int:
        return 86_400 * SECOND


async def test_it_asks_again_after_its_own_time(app: Faena) -> None:
    async def ask() -> None: ...

    check = HealthCheck("tracking", ask, HealthCheckOptions(every="30s", timeout="5s"))
    checker = HealthChecker(Calls(), [check])  # pyright: ignore[reportArgumentType]
    assert await checker.run_once(check) == 30 * SECOND
