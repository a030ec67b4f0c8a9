"""What the machines draw for queues with lanes and orders."""

from __future__ import annotations

from hypothesis import strategies as st

from faena.engine.envelope import seal
from faena.engine.settings import declaration
from faena.limits import Limit
from faena.options import Backpressure, Order, QueueOptions, Retain
from faena.outcomes import Limited, Outcome
from tests._support.rig import SECOND
from tests.properties.strategies import claims, delays, outcomes, specs

LANES = ["@a", "@b", "@"]
CHAINS = {"@a": ["t/a", "k/1/a/x"], "@b": ["t/b"], "@": []}
"""The orders a lane's jobs may keep, beside the queue's own."""

lanes = st.sampled_from(LANES)
lane_outcomes: st.SearchStrategy[Outcome] = st.one_of(
    outcomes, st.builds(Limited, st.sampled_from([1, SECOND, 10 * SECOND]), st.just("tenant"))
)
lane_changes = st.sampled_from(
    [
        {"tenant_max_running": "1"},
        {"tenant_max_running": ""},
        {"tenant_limits": "2/1000000"},
        {"tenant_limits": "1/1000000 3/10000000"},
        {"tenant_limits": ""},
        {"fifo": "1"},
        {"fifo": ""},
        {"pass": "1"},
        {"pass": ""},
        {"tenant_soft": "2", "tenant_hard": "5"},
        {"tenant_soft": "", "tenant_hard": ""},
    ]
)

unmodelled_changes = st.sampled_from([{"learn": "1"}, {"fair_time": "1"}])
"""What is left to the promises: turns and limits then depend on much that was before."""

bounds = st.lists(lane_changes, max_size=4).map(
    lambda drawn: {name: value for changes in drawn for name, value in changes.items()}
)
"""Settings of lanes that a queue is declared with."""


@st.composite
def overrides(draw: st.DrawFn) -> dict[str, str]:
    """What is decided for one tenant: mostly one thing, at times several, at times nothing."""
    one = st.sampled_from(
        [
            {"weight": "2"},
            {"weight": "0.5"},
            {"weight": ""},
            {"limits": "1/1000000"},
            {"limits": "1001/10000000"},
            {"limits": ""},
            {"max_running": "1"},
            {"max_running": "3"},
            {"max_running": ""},
            {"size": "2"},
            {"size": ""},
            {"held_until": "0", "reason": "bill"},
            {"held_until": "", "reason": ""},
            {"held_for": "1000000", "reason": "bill"},
        ]
    )
    drawn: dict[str, str] = {}
    for changes in draw(st.lists(one, min_size=1, max_size=3)):
        drawn |= changes
    return drawn


@st.composite
def lane_specs(draw: st.DrawFn, mode: str | None = None) -> bytes:
    """Most jobs have a lane, half of them an order; some a delay or a unique claim as well."""
    facts: dict[str, object] = {}
    lane = draw(st.sampled_from([*LANES, *LANES, None]))
    chains = [*CHAINS.get(lane or "", []), "q"]
    if lane:
        facts["lane"] = lane
    if draw(st.booleans()):
        facts["chain"] = draw(st.sampled_from(chains))
    if mode or draw(st.integers(0, 4)) == 0:
        facts |= draw(claims(mode))
    if draw(st.integers(0, 4)) == 0:
        facts["delay"] = draw(delays)
    return seal(draw(st.sampled_from([1, 10, 10, 50])), facts, b"{}")


def any_specs(mode: str | None = None) -> st.SearchStrategy[bytes]:
    """With a lane or an order, or with neither."""
    return st.one_of(lane_specs(mode), lane_specs(mode), specs(mode))


@st.composite
def mortal_specs(draw: st.DrawFn, mode: str | None = None) -> bytes:
    """Any jobs, of which some expire."""
    spec = draw(any_specs(mode))
    lasts = draw(st.sampled_from([None, None, None, 1, SECOND, 5 * SECOND]))
    return lasting(spec, lasts) if lasts else spec


def lasting(spec: bytes, us: int) -> bytes:
    """The same job, which expires."""
    return spec[:3] + b" lasts=%d" % us + spec[3:]


def without_lanes(spec: bytes) -> bytes:
    """The same job on a queue that has none."""
    line, newline, body = spec.partition(b"\n")
    words = [word for word in line.split() if not word.startswith((b"lane=", b"chain="))]
    return b" ".join(words) + newline + body


def without_chains(spec: bytes) -> bytes:
    """The same job, free to run in any order."""
    line, newline, body = spec.partition(b"\n")
    words = [word for word in line.split() if not word.startswith(b"chain=")]
    return b" ".join(words) + newline + body


@st.composite
def lane_settings(draw: st.DrawFn) -> dict[str, str]:
    limits = [[], [], [Limit("2/s")], [Limit("2/s"), Limit("5/10s")]]
    press = [None, None, Backpressure(soft=12, hard=20, tenant_soft=2, tenant_hard=6)]
    options = QueueOptions(
        limits=draw(st.sampled_from([[], [], [], [Limit("4/s")]])),
        tenant_limits=draw(st.sampled_from(limits)),
        max_running=draw(st.sampled_from([None, None, None, 4])),
        tenant_max_running=draw(st.sampled_from([None, None, 1, 2])),
        backpressure=draw(st.sampled_from(press)),
        order=draw(st.sampled_from([Order.NONE, Order.TENANT])),
        fair=draw(st.sampled_from([True, True, "time"])),
        learning=draw(st.sampled_from([False, False, True])),
        on_failure=draw(st.sampled_from(["block", "block", "pass"])),
        retain=draw(st.sampled_from([Retain(), Retain(completed_count=0, dead_count=2)])),
        lease=draw(st.sampled_from(["30s", "2s"])),
        max_deliveries=draw(st.sampled_from([1, 3])),
        age_step="1s",
    )
    return declaration(options)
