"""The registry has every figure of the specification's tables."""

from __future__ import annotations

from datetime import timedelta

import pytest
from apps.campotech.pace import Pace
from apps.campotech.registry import POOLS, ROWS, Flags, declare, find, retry_of
from apps.campotech.thresholds import Level, thresholds_of
from apps.campotech.tiers import DISPATCH, TIERS

from faena import Faena, Limit, Order

# queue, priority, limit and its milliseconds, concurrency, attempts, backoff, timeout, isolation,
# ordering mode, idempotent: as the specification's sections 2.1 and 9.1 have them
SPECIFIED = """
afip:invoice        high   10  60000  3  5 afip         60000 shared  org_fifo    no
payment:webhook     high   100 60000 10  5 exponential  30000 shared  unordered   yes
whatsapp:outbound   high   50  60000  5  3 whatsapp     30000 per-org org_fifo    no
whatsapp:inbound    normal 200 60000 20  3 exponential  10000 shared  unordered   no
voice:transcription normal 20  60000  5  3 exponential 120000 shared  unordered   no
voice:extraction    normal 50  60000 10  3 exponential  30000 shared  unordered   no
job:notification    normal 100 60000 10  3 exponential  30000 per-org unordered   no
invoice:pdf         normal 50  60000  5  3 exponential  60000 shared  unordered   no
sync:offline        low    100 60000 10  5 exponential  30000 per-org entity_fifo no
reconciliation      low    5   60000  2  3 exponential 300000 shared  global_fifo no
cleanup             low    10  60000  2  2 fixed        60000 shared  unordered   no
analytics           low    50  60000  5  2 fixed        30000 shared  unordered   no
scheduler           normal 100 60000  5  3 exponential  10000 shared  unordered   no
"""
PRIORITIES = {"high": 5, "normal": 10, "low": 20}
ORDERS = {
    "unordered": Order.NONE,
    "org_fifo": Order.TENANT,
    "entity_fifo": Order.KEY,
    "global_fifo": Order.QUEUE,
}
DELAYS = {  # milliseconds after each attempt, without jitter
    "exponential": [1000, 2000, 4000, 8000, 16000],
    "fixed": [30000, 30000],
    "afip": [30000, 120000, 300000, 900000, 1800000],
    "whatsapp": [5000, 15000, 60000],
}


def rows() -> list[list[str]]:
    return [line.split() for line in SPECIFIED.strip().splitlines()]


@pytest.mark.parametrize("row", rows(), ids=[one[0] for one in rows()])
def test_a_queue_is_declared_as_specified(row: list[str]) -> None:
    alias, priority, most, window, slots, attempts, backoff, timeout, isolation, order, once = row
    queue = declare(Faena("campotech"), Pace(), Flags())[find(alias).name]
    options, limit = queue.options, Limit(max=int(most), per=timedelta(milliseconds=int(window)))
    assert options.priority == PRIORITIES[priority]
    assert [*options.limits] == ([limit] if isolation == "shared" else [])
    assert [*options.tenant_limits] == ([limit] if isolation == "per-org" else [])
    assert (options.concurrency, options.timeout) == (int(slots), f"{int(timeout) // 1000}s")
    assert options.order is ORDERS[order]
    assert options.retry.attempts == int(attempts)
    waits = [options.retry.curve.delay_us(n + 1, None) // 1000 for n in range(len(DELAYS[backoff]))]
    assert waits == DELAYS[backoff]
    assert (options.retry.jitter, options.retry.floor) == (0.2, timedelta(seconds=1))
    assert find(alias).is_idempotent == (once == "yes")


def test_there_are_thirteen_queues_in_four_pools() -> None:
    app = Faena("campotech")
    assert [row.alias for row in ROWS] == [row[0] for row in rows()]
    declare(app, Pace(), Flags())
    known = {name: (p.instances, p.concurrency, p.memory) for name, p in app.pools.items()}
    assert known == {
        "high": (2, 5, "512Mi"),
        "normal": (3, 10, "1Gi"),
        "low": (1, 5, "256Mi"),
        "scheduler": (1, 5, "256Mi"),
    }
    assert sorted(name for *_, served in POOLS.values() for name in served) == sorted(
        row.name for row in ROWS
    )


def test_jobs_are_kept_and_refused_as_specified() -> None:
    options = declare(Faena("campotech"), Pace(), Flags())["scheduler"].options
    assert (options.backpressure.soft, options.backpressure.hard) == (100, 500)
    assert (options.retain.completed, options.retain.completed_count) == ("24h", 1000)
    assert (options.retain.dead, options.retain.dead_count) == ("30d", 10_000)
    assert options.payload_limit == 1024 * 1024


def test_flags_switch_turns_and_backpressure_off() -> None:
    flags = Flags(is_fair=False, has_backpressure=False)
    options = declare(Faena("campotech"), Pace(), flags)["invoice.pdf"].options
    assert options.backpressure is None
    assert not options.fair


def test_an_unknown_queue_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"queue must be one of afip\.invoice, .*got 'mail'"):
        find("mail")


def test_at_another_speed_windows_and_pauses_are_shorter_and_time_limits_are_not() -> None:
    options = declare(Faena("campotech"), Pace(60), Flags())["afip.invoice"].options
    assert [*options.limits] == [Limit("10/s")]
    assert options.retry.curve.delay_us(1, None) == 500_000
    assert options.timeout == "60s"
    assert retry_of(find("cleanup"), Pace(60)).curve.delay_us(1, None) == 500_000


@pytest.mark.parametrize("speed", [0, 0.5, -1, 20_000, float("nan")])
def test_an_odd_speed_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="speed must be from 1 to 10000"):
        Pace(speed)


@pytest.mark.parametrize(
    ("queue", "depth", "wait"),
    [
        ("afip.invoice", (50, 100), (60_000, 300_000)),
        ("payment.webhook", (100, 500), (5_000, 30_000)),
        ("whatsapp.outbound", (200, 500), (10_000, 60_000)),
        ("voice.transcription", (50, 100), (30_000, 120_000)),
        ("cleanup", (100, 300), (30_000, 120_000)),
    ],
)
def test_thresholds_are_those_of_the_specification(
    queue: str, depth: tuple[int, int], wait: tuple[int, int]
) -> None:
    known = thresholds_of(queue)
    assert (known.depth, known.wait_ms) == (Level(*depth), Level(*wait))
    assert (known.error_percent, known.stalled_per_hour) == (Level(5, 15), Level(5, 20))


def test_tiers_are_those_of_the_specification() -> None:
    assert [(one.name, one.objective, one.slots, one.attempts, one.base) for one in TIERS] == [
        ("realtime", "5s", 10, 3, "1s"),
        ("background", "60s", 5, 5, "2s"),
        ("batch", None, 2, 10, "5s"),
    ]
    assert {alias: kind.tier.name for alias, kind in DISPATCH.items()} == {
        "whatsapp:respond": "realtime",
        "notification:push": "realtime",
        "voice:transcribe": "background",
        "notification:sms": "background",
        "notification:email": "background",
        "rating:request": "background",
        "invoice:generate": "batch",
        "invoice:afip-submit": "batch",
        "report:generate": "batch",
        "analytics:calculate": "batch",
        "archive:process": "batch",
    }
    assert {kind.queue for kind in DISPATCH.values()} <= {row.name for row in ROWS}
