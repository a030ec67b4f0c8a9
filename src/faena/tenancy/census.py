"""All tenants of a queue at once, in bounded pages, whatever their number.

What one tenant is kept back by takes a call of its own: `Tenant.view` tells it. Two pages are not
from one instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from faena.engine.calls.survey import Survey
from faena.engine.gates import LaneState
from faena.tenancy.tenants import SETTINGS, TenantView, view_of

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime

_LANE_LIVE: Final = 1_000_000
_HOLD: Final = ("held_until", "reason")


async def census(runtime: Runtime, queue: str) -> list[TenantView]:
    """Every tenant with live jobs or something decided for it; the gates are left out."""
    router = runtime.routers.of(queue)
    live, running = Counter[str](), Counter[str]()
    decided: dict[str, Mapping[str, str]] = {}
    names = await router.names()
    now = (await runtime.engine.overview(names[0])).at
    for shard in names:
        survey = Survey(runtime.engine, shard)
        async for counts in survey.numbers("lanes"):
            for lane, count in counts.items():
                live[lane] += count // _LANE_LIVE
                running[lane] += count % _LANE_LIVE
        async for packed in survey.packed("tenants"):
            decided |= {lane: _in_force(one, now) for lane, one in packed.items()}
    own = (await router.table()).own
    return [
        view_of(
            lane,
            LaneState(dict(decided.get(lane, {})), live[lane], running[lane], None, ()),
            is_dedicated=lane in own,
        )
        for lane in sorted({*live, *(lane for lane, one in decided.items() if one)})
        if live[lane] or decided.get(lane)
    ]


def _in_force(packed: bytes, now: int) -> dict[str, str]:
    """An override as it counts at an instant: what has ended is taken out, as the scripts do."""
    try:
        found: dict[str, Any] = msgspec.msgpack.decode(packed)
    except msgspec.MsgspecError:
        return {}
    if found.get("ends_at") and found["ends_at"] <= now:
        found = {name: one for name, one in found.items() if name not in (*SETTINGS, "ends_at")}
    if found.get("held_until") and found["held_until"] <= now:
        found = {name: one for name, one in found.items() if name not in _HOLD}
    if not any(name in found for name in (*SETTINGS, "held_until")):
        return {}
    return {name: str(value) for name, value in found.items() if name != "z"}
