"""What a queue tells: counts, jobs, statistics, shares of its tenants."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from faena.codec import codec_for
from faena.engine.calls.transfer import TransferCalls
from faena.engine.overview import Overview
from faena.errors import ConfigError, arguments, shown
from faena.inspection.inspector import Page
from faena.inspection.past import Source
from faena.options import QueueOptions
from faena.options.fields import check_choice, check_is
from faena.producing.handle import Handle
from faena.states import State, state_of
from faena.telemetry.statistics import QueueStatistics, Series
from faena.telemetry.statistics_reader import LONGEST_US, StatisticsReader, reader_of
from faena.tenancy.census import census
from faena.tenancy.lanes import lane_named
from faena.tenancy.shares import Shares, shares_of
from faena.tenancy.tenants import TenantView, check_lanes
from faena.values.duration import Duration, to_us
from faena.values.ids import Label, as_label
from faena.values.numbers import check_whole

if TYPE_CHECKING:
    from faena.app import Faena

_MINUTE_US = 60_000_000


class QueueReader:
    """The part of a queue that reads and changes nothing."""

    def __init__(self, app: Faena, name: str, options: QueueOptions) -> None:
        self.app = self._app = app
        self.name = name
        self.options = options

    async def overview(self) -> Overview:
        """Counts, holds, settings and workers."""
        return await (await self._app.runtime()).inspector.overview(self.name)

    async def counts(self) -> dict[str, int]:
        """Jobs per state; `dead` counts those that are still pending at the desk."""
        return (await self.overview()).counts

    def handle(self, job_id: Label, *, tenant: Label | None = None) -> Handle[Any]:
        """A job by its id, and its tenant where tenants choose ids; the broker is not asked."""
        name, lane = as_label("id", job_id), lane_named(tenant)
        return Handle(self._app, self.name, name, codec_for(Any), lane)

    async def jobs(
        self,
        state: State | str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        is_newest_first: bool = False,
        source: Source = "both",
    ) -> Page:
        """One page of the jobs in a state; finished ones from the history too, as `source` says."""
        with arguments():
            limit = check_whole("limit", limit, least=1, most=1000)
            check_is("is_newest_first", is_newest_first, bool)
            check_choice("source", source, ("both", "broker", "history"))
        state = state_of(state, State)
        inspector = (await self._app.runtime()).inspector
        order = {"is_newest_first": is_newest_first}
        return await inspector.page(
            self.name, state, limit=limit, cursor=cursor, source=source, **order
        )

    # -- statistics -------------------------------------------------------------------------------

    async def statistics(
        self, window: Duration = "1h", *, until: datetime | None = None
    ) -> QueueStatistics:
        """What happened to its jobs in the last `window`, or in the one that ends at `until`.

        Windows begin with a minute, or if that is more than two days ago with an hour, and begin
        at most thirty days ago.
        """
        reader = await self._statistics_reader()
        window_us = to_us("window", window, least_us=_MINUTE_US, most_us=LONGEST_US)
        return await reader.window(window_us, _instant(until))

    async def series(
        self,
        window: Duration = "24h",
        *,
        step: Duration = "5m",
        until: datetime | None = None,
    ) -> Series:
        """The same, step by step: each is some minutes, or some hours."""
        reader = await self._statistics_reader()
        window_us = to_us("window", window, least_us=_MINUTE_US, most_us=LONGEST_US)
        step_us = to_us("step", step, least_us=_MINUTE_US, most_us=window_us)
        if step_us % _MINUTE_US:
            raise ConfigError(f"step must be whole minutes, got {shown(step)}", field="step")
        return await reader.series(window_us, step_us, _instant(until))

    async def _statistics_reader(self) -> StatisticsReader:
        runtime = await self._app.runtime()
        return await reader_of(runtime.engine, runtime.routers, self.name)

    async def census(self) -> list[TenantView]:
        """All its tenants with live jobs or settings of their own, by name, without their gates.

        It is read in pages, however many they are; `tenants` has the busiest ones with all facts.
        """
        check_lanes(self.name, self.options)
        return await census(await self._app.runtime(), self.name)

    async def shares(self, *, minutes: int = 1) -> list[Shares]:
        """Each tenant's share of the last full minutes, oldest first, and of the current one."""
        check_lanes(self.name, self.options)
        minutes = check_whole("minutes", minutes, least=0, most=59)
        runtime = await self._app.runtime()
        router = await runtime.routers.of(self.name).names()
        gone = await TransferCalls(runtime.engine).retired(self.name)
        return await shares_of(runtime.engine, [*dict.fromkeys([*router, *gone])], minutes)


def _instant(until: datetime | None) -> int | None:
    if until is None:
        return None
    check_is("until", until, datetime)
    if until.tzinfo is None:
        raise ConfigError(
            f"until must have a time zone, got {until.isoformat()}", field="until", value=until
        )
    return int(until.astimezone(UTC).timestamp() * 1_000_000)
