"""What the machine draws: jobs, endings, settings, faults."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from faena.engine.envelope import seal
from faena.limits import Limit
from faena.options import Backpressure, QueueOptions, Retain
from faena.outcomes import (
    Buried,
    Cancelled,
    Completed,
    ErrorRecord,
    Limited,
    Outcome,
    Released,
    Retried,
    Snoozed,
)
from tests._support.faulty_wire import Fault
from tests._support.rig import SECOND
from tests.properties.model import FINISHED

IDS = [f"j{number:02d}" for number in range(24)]
ERROR = ErrorRecord(name="Boom", message="it broke")

faults: st.SearchStrategy[Fault] = st.sampled_from(
    ["none", "none", "none", "none", "lost", "doubled", "kept", "vanished"]
)
delays = st.sampled_from([1, SECOND, 7 * SECOND, 60 * SECOND])
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Completed()),
    st.sampled_from([Completed(b"1"), Completed(b"x" * 20)]),
    st.builds(Retried, delay_us=st.sampled_from([0, SECOND, 10 * SECOND]), error=st.just(ERROR)),
    st.builds(Buried, error=st.just(ERROR), has_run=st.booleans()),
    st.just(Cancelled(ERROR)),
    st.builds(Snoozed, delay_us=delays),
    st.builds(Limited, delay_us=st.sampled_from([1, SECOND])),
    st.sampled_from([Released(), Released(priority=50)]),
)
changes = st.sampled_from(
    [
        {"max_running": "2"},
        {"max_running": ""},
        {"limits": ""},
        {"limits": "4/1000000"},
        {"limits": "2/1000000 6/10000000"},
        {"soft": "5", "hard": ""},
        {"hard": "12", "max_delay_us": ""},
        {"completed_bytes": "40", "dead_bytes": ""},
        {"completed_bytes": "", "dead_bytes": "12"},
        {"completed_count": "2"},
        {"lease_us": "5000000"},
    ]
)


@st.composite
def specs(draw: st.DrawFn, mode: str | None = None) -> bytes:
    """Half of the jobs are ordinary; the others have a delay, a digest, a unique claim."""
    facts: dict[str, object] = draw(claims(mode)) if mode else {}
    if not mode and draw(st.booleans()):
        facts |= draw(st.one_of(st.just({}), claims(), claims()))
        if draw(st.integers(0, 3)) == 0:
            facts["delay"] = draw(delays)
        if draw(st.integers(0, 3)) == 0:
            facts["digest"] = draw(st.sampled_from("de"))
    body = draw(st.sampled_from([b"{}", b"{}", b"[]", b'{"n":9007199254740993}']))
    return seal(draw(st.sampled_from([1, 10, 10, 50])), facts, body)


@st.composite
def claims(draw: st.DrawFn, mode: str | None = None) -> dict[str, object]:
    mode = mode or draw(st.sampled_from(["waiting", "live", "last", "debounce", "throttle"]))
    facts: dict[str, object] = {"unique": draw(st.sampled_from("uuv")), "mode": mode}
    is_replace = mode == "debounce" and draw(st.booleans())
    if mode in ("throttle", "debounce") and not is_replace:
        facts["ttl"] = 600 * SECOND  # the server counts it in real time as well
    if mode == "debounce" and not is_replace:
        facts["delay"] = SECOND
    return facts


@st.composite
def retains(draw: st.DrawFn) -> Retain:
    bounds: dict[str, Any] = {}
    for state in FINISHED:
        bounds[state] = draw(st.sampled_from(["24h", "24h", "5s", "0s"]))
        bounds[f"{state}_count"] = draw(st.sampled_from([1000, 1000, 3, 1, 0]))
        bounds[f"{state}_bytes"] = draw(st.sampled_from([None, None, 30, 5]))
    return Retain(**bounds)


@st.composite
def queue_options(draw: st.DrawFn) -> QueueOptions:
    limits = [[], [], [Limit("3/s")], [Limit("3/s"), Limit("8/min")], [Limit("1001/10s")]]
    return QueueOptions(
        limits=draw(st.sampled_from(limits)),
        max_running=draw(st.sampled_from([None, None, None, 1, 4])),
        backpressure=draw(st.sampled_from([None, None, Backpressure(soft=3, hard=9)])),
        retain=draw(st.one_of(st.just(Retain()), retains())),
        lease=draw(st.sampled_from(["30s", "2s"])),
        max_deliveries=draw(st.sampled_from([1, 2, 3])),
        age_step="1s",
        retry_boost=draw(st.sampled_from([0, 2])),
    )
