"""One tenant of a queue: its own settings, its hold, its shard.

    acme = queue.tenant("acme")
    await acme.configure(limits=[Limit("5/s")], weight=2, lasting="1h", by="ops")
    await acme.hold("invoice unpaid")
    await acme.release()
    await acme.dedicate()

Everything is checked before anything is sent; changes apply from the next call of a script on.
Settings and hold can each have an end, by the server's clock.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import msgspec

from faena.engine.calls.survey import Survey
from faena.engine.gates import LaneState
from faena.engine.settings import limits_text, read_limits
from faena.errors import ConfigError, nearest, shown
from faena.inspection.gate import Gate, gates_of
from faena.inspection.inspector import Page
from faena.limits import Limit, check_stack
from faena.options import QueueOptions
from faena.sharding.quota import check_stays
from faena.sharding.routing_table import Change, Table
from faena.tenancy.lanes import lane_of, tenant_of
from faena.tenancy.ready import ready_jobs, ready_number
from faena.values.duration import Duration, to_s, to_us
from faena.values.keywords import known_keywords
from faena.values.names import check_label, check_reason
from faena.values.numbers import check_real, check_whole
from faena.values.view import View

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime

_LEAST_WEIGHT: Final = 0.01
_MOST_WEIGHT: Final = 1000.0
_MANY: Final = 1_000_000_000
_NO_LIMIT: Final = "none"
"""Read by the scripts as limits, of which it holds not one."""
_UNTIL_FREED: Final = 1e18
_LANE_LIVE: Final = 1_000_000


class TenantFields(TypedDict, total=False):
    """The settings of one tenant; None returns to the queue's."""

    limits: Sequence[Limit] | None
    """Its limits instead of the queue's `tenant_limits`; an empty list: no limits."""
    max_running: int | None
    """The most running jobs, instead of the queue's `tenant_max_running`."""
    weight: float | None
    """Its weight when tenants take turns: 0.01 to 1000; others have 1."""
    size: int | None
    """The most live jobs, instead of `tenant_hard`; more are refused, and 0 refuses all."""


class TenantView(View, frozen=True, kw_only=True):
    """The settings and the state of a tenant. Instants are the server's microseconds."""

    also = ("is_held",)

    tenant: str | None
    """None for jobs without a tenant, which share a lane."""
    limits: tuple[Limit, ...] | None
    """These four are None where the queue's settings apply."""
    max_running: int | None
    weight: float | None
    size: int | None
    held_until: int | None
    """None: not held; 0: held until it is released."""
    reason: str | None
    """The reason of the hold; `rate_limited` if a handler asked for it."""
    by: str | None
    """Who made the last change, and when."""
    at: int | None
    ends_at: int | None
    """When the four settings end."""
    live: int
    """Its waiting and running jobs."""
    running: int
    parked_until: int | None
    """When it is looked at again at the latest, having ready jobs that may not start now: 0 when
    that is as soon as it is released or one of its jobs ends; None when nothing is in their way, or
    not yet seen.
    """

    gates: tuple[Gate, ...] = ()
    """What keeps its jobs from starting, as `explain` names it: tenant_moving, tenant_held,
    tenant_max_running, tenant_limit."""

    is_dedicated: bool = False
    """Whether it has a shard of its own."""
    is_moving: bool = False
    """Whether some of its jobs are still in its previous shard."""

    @property
    def is_held(self) -> bool:
        """Whether it is not served until an instant or until released."""
        return self.held_until is not None


class Tenant:
    """One tenant of one queue."""

    def __init__(
        self,
        runtime: Callable[[], Awaitable[Runtime]],
        queue: str,
        tenant: str | None,
        *,
        is_movable: bool = True,
    ) -> None:
        self._runtime = runtime
        self._queue = queue
        self._is_movable = is_movable
        self.name = None if tenant is None else check_label("tenant", tenant)

    async def view(self) -> TenantView:
        """Its settings, its hold and its number of jobs."""
        runtime = await self._runtime()
        await runtime.routers.of(self._queue).look()  # whether it moves, is asked now
        return await _view(runtime, self._queue, lane_of(self.name))

    async def ready(self, *, limit: int = 50, cursor: str | None = None) -> Page:
        """A page of its ready jobs, those that start first first; without those that wait for a
        limit of their key."""
        limit = check_whole("limit", limit, least=1, most=1000)
        return await ready_jobs(
            await self._runtime(), self._queue, lane_of(self.name), limit, cursor
        )

    async def ready_count(self) -> int:
        """How many jobs such pages have in all."""
        runtime, lane = await self._runtime(), lane_of(self.name)
        return await ready_number(runtime, self._queue, lane)

    async def configure(
        self,
        *,
        lasting: Duration | None = None,
        by: str = "operator",
        **settings: Unpack[TenantFields],
    ) -> TenantView:
        """Change settings of this tenant, for a time or until `reset`.

        Other settings stay, but every call sets a new end for all of them.
        """
        changes = {name: _text(name, value) for name, value in settings.items()}
        if not changes:
            raise ConfigError(
                f"configure must be given a setting, got none; {nearest('', _TEXTS)}",
                field="settings",
            )
        duration_us = None if lasting is None else to_us("lasting", lasting, least_us=1)
        return await self._change(changes, by=by, duration_us=duration_us)

    @known_keywords("hold")
    async def hold(
        self, reason: str, *, lasting: Duration | None = None, by: str = "operator"
    ) -> TenantView:
        """Start none of its jobs until `release`, or for a given time; running ones continue."""
        hold = {"held_until": "0"}
        if lasting is not None:
            hold = {"held_for": str(to_us("lasting", lasting, least_us=1))}
        return await self._change({**hold, "reason": check_reason(reason)}, by=by)

    async def release(self, *, by: str = "operator") -> TenantView:
        """End its hold, whoever set it; its settings stay."""
        return await self._change({"held_until": "", "reason": ""}, by=by)

    async def reset(self, *, by: str = "operator") -> TenantView:
        """Remove its settings and its hold: the queue's settings apply again."""
        nothing = dict.fromkeys((*SETTINGS, "held_until", "reason"), "")
        return await self._change(nothing, by=by)

    async def _change(
        self, changes: Mapping[str, str], *, by: str, duration_us: int | None = None
    ) -> TenantView:
        check_label("by", by)
        runtime, lane = await self._runtime(), lane_of(self.name)

        async def change(table: Table) -> TenantView:
            state = await runtime.engine.tenant(
                table.shard_of(self._queue, lane),
                lane,
                changes,
                epoch=table.epoch,
                by=by,
                duration_us=duration_us,
            )
            return view_of(lane, state, is_dedicated=lane in table.own)

        return await runtime.routers.of(self._queue).on_current_shards(change)

    async def dedicate(self, *, by: str = "operator", wait: Duration = "30s") -> TenantView:
        """Give the tenant a shard of its own, with a pool of slots of its own in every worker.

        Its waiting jobs move there in order. Returns when they have moved, or after `wait`: then
        the move continues in the background, here and in every worker. Raises InvalidTransition,
        with nothing moved, if another change of the queue's shards has not ended by then.
        """
        return await self._relocate(Change(own=lane_of(self.name)), by=by, wait=wait)

    async def rejoin(self, *, by: str = "operator", wait: Duration = "30s") -> TenantView:
        """Return the tenant to the shared shards; its jobs move back in order."""
        return await self._relocate(Change(shared=lane_of(self.name)), by=by, wait=wait)

    async def _relocate(self, change: Change, *, by: str, wait: Duration) -> TenantView:
        check_label("by", by)
        wait_s = to_s("wait", wait)
        if not self._is_movable:
            raise ConfigError(
                f"queue {self._queue} has order 'queue': no tenant can have a shard of its own",
                field="order",
            )
        runtime = await self._runtime()
        check_stays((await runtime.inspector.overview(self._queue)).settings, self._queue)
        router = runtime.routers.of(self._queue)
        until = time.monotonic() + wait_s
        await router.change(change, by, wait_s)
        await router.settled(until - time.monotonic())
        return await self.view()

    def __repr__(self) -> str:
        return f"<Tenant {self._queue}/{self.name or ''}>"


# -- reading ------------------------------------------------------------------------------------


def check_lanes(queue: str, options: QueueOptions, *, is_of_all: bool = False) -> None:
    """Refuse if the queue has no lanes for tenants.

    With `is_of_all`, also if jobs without a tenant do not always have a lane.
    """
    if not options.is_fair:
        raise ConfigError(
            f"queue {queue} must have lanes for tenants: declare it without fair=False, "
            f"or with fair=True if it has order 'queue'",
            field="fair",
        )
    if is_of_all and not options.is_laned:
        raise ConfigError(
            f"queue {queue} has no lane for jobs without a tenant, and this needs one: declare it "
            f"with fair=True, tenant_limits=, tenant_max_running=, key_limits= or shards=",
            field="fair",
        )


async def _view(runtime: Runtime, queue: str, lane: str) -> TenantView:
    """What is decided for a lane; while it moves, its jobs at the old shard count too."""
    ask = runtime.engine.tenant

    async def view(table: Table) -> TenantView:
        shard, former = table.shard_of(queue, lane), table.former().shard_of(queue, lane)
        state = await ask(shard, lane, epoch=table.epoch)
        found = view_of(lane, state, is_dedicated=lane in table.own)
        if former == shard:
            return found
        left = await ask(former, lane, epoch=table.epoch)
        live, running = found.live + left.live, found.running + left.running
        return msgspec.structs.replace(found, is_moving=True, live=live, running=running)

    return await runtime.routers.of(queue).on_current_shards(view)


async def busiest(runtime: Runtime, queue: str, number: int) -> list[TenantView]:
    """The tenants with the most live jobs; those that only have something decided come last."""
    live: Counter[str] = Counter()
    router = runtime.routers.of(queue)
    for shard in await router.names():
        survey = Survey(runtime.engine, shard)
        async for page in survey.ids("tenants", is_hash=True):
            live.update(dict.fromkeys(page, 0))
        async for counts in survey.numbers("lanes"):
            live.update({lane: count // _LANE_LIVE for lane, count in counts.items()})
    first = sorted(live, key=lambda lane: (-live[lane], lane))[:number]
    views = [await _view(runtime, queue, lane) for lane in first]
    return [view for view in views if view.live or view.by]  # what was decided may have ended


async def weights_of(runtime: Runtime, queue: str) -> dict[str, float]:
    """The weights of tenants that have one of their own."""
    lanes = set[str]()
    for shard in await runtime.routers.of(queue).names():
        async for page in Survey(runtime.engine, shard).ids("tenants", is_hash=True):
            lanes.update(page)
    views = [await _view(runtime, queue, lane) for lane in sorted(lanes)]
    return {view.tenant or "": view.weight for view in views if view.weight is not None}


def view_of(lane: str, state: LaneState, *, is_dedicated: bool) -> TenantView:
    """A lane's state as its view."""
    found, again = state.override, state.parked_until
    numbers = {name: _whole(found.get(name)) for name in _NUMBERS}
    return TenantView(
        tenant=tenant_of(lane),
        limits=_read_limits(found.get("limits")),
        weight=float(found["weight"]) if "weight" in found else None,
        reason=found.get("reason"),
        by=found.get("by"),
        live=state.live,
        running=state.running,
        is_dedicated=is_dedicated,
        is_moving=False,
        gates=gates_of(state.gates),
        parked_until=None if again is None else 0 if again >= _UNTIL_FREED else int(again),
        **numbers,
    )


_NUMBERS: Final = ("max_running", "size", "held_until", "at", "ends_at")


def _whole(text: str | None) -> int | None:
    return None if text is None else int(float(text))


def _read_limits(text: str | None) -> tuple[Limit, ...] | None:
    if text is None:
        return None
    return () if text == _NO_LIMIT else read_limits(text)


# -- checking -----------------------------------------------------------------------------------


def _text(name: str, value: Any) -> str:
    """A setting as the scripts read it; nothing where the queue is to decide."""
    if name not in _TEXTS:
        raise ConfigError(
            f"setting of a tenant must be a known one, got {shown(name)}; {nearest(name, _TEXTS)}",
            field=name,
            value=value,
        )
    return "" if value is None else _TEXTS[name](value)


def _limits(value: Any) -> str:
    stack = check_stack(value)
    for one in stack:
        if one.cost is not None:
            raise ConfigError(
                f"limits of one tenant must be on claims, got {one}: set limits by cost for all "
                f"tenants, with the queue's tenant_limits",
                field="limits",
                value=value,
            )
    return limits_text(stack) or _NO_LIMIT


_TEXTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "limits": _limits,
    "max_running": lambda value: str(check_whole("max_running", value, least=1, most=_MANY)),
    "weight": lambda value: repr(
        check_real("weight", value, least=_LEAST_WEIGHT, most=_MOST_WEIGHT)
    ),
    "size": lambda value: str(check_whole("size", value, least=0, most=_MANY)),
}

SETTINGS: Final = tuple(_TEXTS)
