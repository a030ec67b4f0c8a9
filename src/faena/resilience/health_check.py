"""Health checks of features: coroutines that workers run, one process at a time for each.

A process asks before each run. One that dies while it runs a check keeps it for the check's
timeout and a little longer; then the first process that asks runs it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict, TypeVar

from faena.engine.calls.features import FeatureCalls
from faena.errors import FaenaError
from faena.options.fields import check_choice, derive
from faena.resilience.feature import TROUBLES, Trouble
from faena.values.duration import Duration, describe, to_us
from faena.values.numbers import keep_whole

Run = Callable[[], Awaitable[Any]]
R = TypeVar("R", bound=Run)

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_MARGIN_US: Final = 5 * _SECOND
"""How much longer than its timeout a check may take before its process is taken for dead."""
_MOST_FAILURES: Final = 1_000
_AFTER_ERROR_S: Final = 5.0
_LONGEST: Final = 200

_log = logging.getLogger("faena.features")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckOptions:
    """When a check runs, and what its failures mean."""

    every: Duration = "30s"
    """The time between two runs, in all processes together."""

    timeout: Duration = "5s"
    """How long one run may take; longer is a failure."""

    failures: int = 3
    """How many failures in a row are enough; one success ends them."""

    when_failing: Trouble = "offline"
    """What the feature is then."""

    every_us: int = field(init=False, repr=False, compare=False)
    timeout_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        derive(self, "every_us", to_us("every", self.every, least_us=_SECOND, most_us=_DAY))
        timeout_us = to_us("timeout", self.timeout, least_us=1_000, most_us=_DAY)
        derive(self, "timeout_us", timeout_us)
        keep_whole(self, "failures", least=1, most=_MOST_FAILURES, what="failures")
        check_choice("when_failing", self.when_failing, TROUBLES)


class HealthCheckFields(TypedDict, total=False):
    """The options of a health check; see `HealthCheckOptions`."""

    every: Duration
    timeout: Duration
    failures: int
    when_failing: Trouble


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The check of one feature."""

    feature: str
    run: Run
    options: HealthCheckOptions

    async def problem(self) -> str | None:
        """Run it once; what is wrong, or None."""
        try:
            async with asyncio.timeout(self.options.timeout_us / 1e6):
                is_good = await self.run()
        except TimeoutError:
            return f"no answer within {describe(self.options.timeout_us)}"
        except Exception as error:  # noqa: BLE001 - whatever a check raises is its result
            said = " ".join(str(error).split())
            name = type(error).__name__
            return (f"{name}: {said}" if said else name)[:_LONGEST]
        return "the check returned False" if is_good is False else None


class HealthChecker:
    """Runs the checks of a program in a worker process."""

    def __init__(
        self,
        calls: FeatureCalls,
        checks: Sequence[HealthCheck],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._calls, self._checks, self._sleep = calls, checks, sleep

    async def run(self) -> None:
        """Run them until cancelled."""
        async with asyncio.TaskGroup() as group:
            for check in self._checks:
                group.create_task(self._serve(check))

    async def _serve(self, check: HealthCheck) -> None:
        while True:
            try:
                wait_us = await self.run_once(check)
            except FaenaError as error:
                _log.warning("health check of %s is tried again: %s", check.feature, error)
                wait_us = round(_AFTER_ERROR_S * 1e6)
            # Processes that wait for the same instant should not all ask at once.
            await self._sleep(wait_us / 1e6 * (1 + random.random() / 20))

    async def run_once(self, check: HealthCheck) -> int:
        """Run it if it is due and no other process runs it; after how long to ask again."""
        options, owner = check.options, secrets.token_hex(8)
        lease_us = options.timeout_us + _MARGIN_US
        wait_us = await self._calls.begin_check(check.feature, owner, lease_us)
        if wait_us:
            return min(wait_us, max(options.every_us, lease_us))
        problem = await check.problem()
        if problem is not None:
            _log.warning("health check of %s failed: %s", check.feature, problem)
        numbers = {"every_us": options.every_us, "failures": options.failures}
        await self._calls.end_check(check.feature, owner, problem, **numbers)
        return options.every_us
