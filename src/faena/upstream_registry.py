"""What a program declares of outside services: upstreams, what they cost, and features."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from faena.engine import Engine
from faena.engine.calls.budget_view import BudgetView
from faena.engine.calls.upstreams import UpstreamView
from faena.errors import ConfigError
from faena.options import build
from faena.registry import Registry
from faena.resilience.cached_read import CachedValue, ReadFields, ReadTerms, cached_read
from faena.resilience.control import UpstreamControl
from faena.resilience.costs import CostDesk, CostReport
from faena.resilience.feature import Feature, FeatureFields, Level, Trouble
from faena.resilience.features import Features
from faena.resilience.gate import Gate
from faena.resilience.health_check import HealthCheckFields, R
from faena.resilience.money import TOTALS, Budget, check_budgets, total_settings
from faena.resilience.permits import Permit
from faena.resilience.push import UpstreamPush
from faena.resilience.upstream import Upstream, check_own
from faena.resilience.upstream_options import UpstreamFields, UpstreamOptions
from faena.runtime.connections import Connection
from faena.scheduling.daily_costs import DailyCosts
from faena.values.keywords import known_keywords
from faena.values.money import Money
from faena.values.names import check_name

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.queue import Queue

T = TypeVar("T")

_log = logging.getLogger("faena.resilience")


class UpstreamRegistry(Registry):
    """The upstreams and features of an app, by name."""

    def __init__(self, name: str, connection: Connection, on_fork: Callable[[], None]) -> None:
        super().__init__(name, connection, on_fork)
        self.upstreams: dict[str, Upstream] = {}
        self.features = Features(self.upstreams, connection.features, self)

    # -- upstreams --------------------------------------------------------------------------------

    def upstream(self, name: str, **options: Unpack[UpstreamFields]) -> Upstream:
        """An outside service that jobs call; see `UpstreamOptions`."""
        check_name("upstream", name)
        if name in self.upstreams:
            raise ConfigError(
                f"upstream {name} must be declared once, got it again", field="upstream", value=name
            )
        built = build(UpstreamOptions, "upstream", options)
        for doubt in built.doubts():
            _log.warning("upstream %s: %s", name, doubt)
        self._links.connection.upstreams[name] = built.settings()
        self.upstreams[name] = Upstream(
            name,
            built,
            self._gate,
            self._permit_in_thread,
            self.upstream_control,
            self.name,
            self._span_of_call,
        )
        return self.upstreams[name]

    def _span_of_call(self, upstream: str) -> AbstractContextManager[object]:
        return nullcontext() if (tracing := self.tracing) is None else tracing.calling(upstream)

    @property
    def upstream_control(self) -> UpstreamControl:
        """Views and panics of upstreams by name, also of those that other programs declare, or that
        none declares any more: `forget` removes these."""
        return UpstreamControl(self._engine, self._links.connection.upstreams)

    async def upstream_views(self) -> list[UpstreamView]:
        """How all upstreams are, also those of other programs."""
        return await self.upstream_control.views()

    async def cached_read(
        self, key: str, fetch: Callable[[], Awaitable[T]], **terms: Unpack[ReadFields]
    ) -> CachedValue[T]:
        """Read a value, or use one that was read before; see `ReadTerms` and docs/fallbacks.md."""
        built = build(ReadTerms, "cached_read", {**terms, "key": key})
        if built.upstream is not None:
            check_own(built.upstream, self.name, self.upstreams)
        return await cached_read(self.runtime, built, fetch)

    async def _gate(self) -> Gate:
        return (await self._push()).gate

    async def _push(self) -> UpstreamPush:
        """What happens to upstreams is heard from the first call to one on."""
        push = (await self.runtime()).upstream_push
        await push.start()
        return push

    async def _engine(self) -> Engine:
        return (await self.runtime()).engine

    def _permit_in_thread(self, asking: Coroutine[Any, Any, Permit]) -> Permit:
        return self.sync.run(asking)

    # -- costs ------------------------------------------------------------------------------------

    def total_budgets(self, budgets: Sequence[Budget]) -> None:
        """How much may be spent in all upstreams of a currency together; replaces what was said."""
        checked = check_budgets(budgets, None, may_be_tenants=False)
        self._links.connection.upstreams[TOTALS] = total_settings(checked)

    async def budget_views(self, *, tenant: str | None = None) -> list[BudgetView]:
        """How much of each budget is used now, also of those of other programs.

        Of budgets that each tenant has, that of `tenant`, or of the one that has spent most.
        """
        return await self._costs.budgets(tenant)

    async def cost_report(
        self, *, month: str | None = None, day: date | str | None = None, top: int = 10
    ) -> CostReport:
        """What was spent in a month or on a day, of UTC; by default in this month so far.

        `top` is how many tenants are named for each upstream. Costs are kept for 90 days.
        """
        return await self._costs.report(month=month, day=day, top=top)

    async def tenant_costs(self, *tenants: str) -> dict[str, tuple[Money, ...]]:
        """What calls for each of these tenants have cost in this month of UTC, by currency."""
        return await self._costs.tenants(tenants)

    @known_keywords("daily_cost_report")
    def daily_cost_report(
        self, *, at: str = "08:00", timezone: str = "UTC", queue: Queue | str | None = None
    ) -> DailyCosts:
        """Run a coroutine function every day with the costs of the day before, of UTC.

        It becomes a task on the queue `scheduler`, or on the one given, with a schedule of its
        name.
        """
        return DailyCosts(cast("Faena", self), at=at, timezone=timezone, queue=queue)

    @property
    def _costs(self) -> CostDesk:
        return CostDesk(self._engine, self._links.connection.upstreams)

    # -- features ---------------------------------------------------------------------------------

    def feature(self, name: str, **options: Unpack[FeatureFields]) -> Feature:
        """What the program does for its users, with its state; see `FeatureOptions`."""
        return self.features.add(name, options)

    def level(self, name: str, states: Mapping[str, Trouble]) -> Level:
        """A saved set of states of features, for an operator to switch on."""
        return self.features.add_level(name, states)

    def health_check(self, feature: str, **options: Unpack[HealthCheckFields]) -> Callable[[R], R]:
        """Declare a coroutine that checks a feature in a worker; see `HealthCheckOptions`."""
        return self.features.add_check(feature, options)
