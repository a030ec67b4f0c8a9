"""What the demo makes of a history of alerts, and of advice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from apps.demo.told import Told, episodes_of, needs_of

from faena import AlertChange, QueueAdvice

BEGAN_US = 1_000_000_000


def change(after_s: float, what: str, *, severity: str = "warning", since_s: float) -> AlertChange:
    return AlertChange(
        at=BEGAN_US + round(after_s * 1e6),
        change=what,
        rule="depth",
        subject="afip.invoice",
        severity=severity,
        since=BEGAN_US + round(since_s * 1e6),
        text=f"{what} (warning from 50)",
        is_silenced=False,
    )


def test_an_alert_lasts_from_when_it_fired_to_when_it_was_resolved() -> None:
    history = [
        change(30, "firing", since_s=30),
        change(20, "resolved", since_s=5),
        change(15, "eased", since_s=5),
        change(10, "escalated", severity="critical", since_s=5),
        change(5, "firing", since_s=5),
        change(1, "resolved", since_s=-9),  # of before, and what it was is not known any more
    ]
    told = Told(episodes_of(history, BEGAN_US), [])
    first, second = told.episodes
    assert (first.fired_s, first.resolved_s, first.severity) == (5, 20, "critical")
    assert first.text == "escalated (warning from 50)"
    assert (second.fired_s, second.resolved_s, second.severity) == (30, None, "warning")
    (alarm,) = told.alarms
    assert (alarm.worst, alarm.resolved_s, alarm.lasted_s) == (first, None, 15)


def advice(queue: str, count: int, service_s: float | None, wait_us: float | None) -> Any:
    wait, status = SimpleNamespace(p95_us=wait_us), "warning" if queue == "analytics" else "healthy"
    return SimpleNamespace(
        queue=queue, count=count, service_s=service_s, wait=wait, status=status, words=("one",)
    )


def test_a_pool_needs_what_its_queues_have_in_use_together() -> None:
    busy = {"afip.invoice": (500, 1.0, 2e6), "analytics": (1, 0.1, None)}
    names = (
        "afip.invoice payment.webhook whatsapp.outbound whatsapp.inbound voice.transcription "
        "voice.extraction job.notification invoice.pdf sync.offline reconciliation cleanup "
        "analytics scheduler"
    )
    found = {name: advice(name, *busy.get(name, (0, None, None))) for name in names.split()}
    high, normal, low, _ = needs_of(cast("dict[str, QueueAdvice]", found), 50.0)
    assert (high.pool, high.in_use, high.recommended_slots) == ("high", 10, 15)
    assert (high.recommended_processes, high.advice) == (3, "1 more")
    assert (high.slowest, high.wait_p95_s) == ("afip.invoice", 2)
    assert (normal.recommended_processes, normal.advice) == (1, "2 fewer")
    assert (low.advice, low.words) == ("keep them", ("analytics: one",))
