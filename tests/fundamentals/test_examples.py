"""The programs in examples/, run as their first lines say, each on a server of its own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faena import Order, Queue, Retry

ROOT = Path(__file__).parents[2]
PRINTED = {
    "aurora": [
        "/health/redis {'ok': True}",
        "message wamid.1 of aurora died: nothing to answer",
        "campaign spring: 2 of 2 sent",
    ],
    "batches": ["ana-0: sent", "leo: sent"],
    "campotech": ["['created', 'duplicate']", "ana was sent inv-9.pdf with CAE 71234567890123"],
    "fastapi_app": ["ana knows about visit 7"],
    "features": [
        "all is well: healthy",
        "invoicing.afip from=healthy to=degraded source=breaker:afip",
        "AFIP is down: degraded",
        "  invoicing.afip degraded (breaker:afip): AFIP does not answer; invoices are queued",
        "leo: email",
        "  tracking.realtime degraded (level:black-friday): polling",
    ],
    "outage": ["afip is back", "300 of 300 invoices have their CAE"],
    "pools": ["payment mp-98765 is booked", "message to ana is sent"],
    "quickstart": ["ana-2.pdf, attempt 2"],
}


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_example_does_what_it_says(name: str, tmp_path: Path) -> None:
    hidden = ("FAENA_", "REDIS_", "WORKER_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for line in PRINTED[name]:
        assert line in done.stdout.splitlines()


@pytest.mark.parametrize("name", ["aurora", "campotech"])
def test_a_service_fits_on_three_screens(name: str) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text("utf-8").splitlines()) <= 150


REGISTRY = """
afip.invoice         5   10/min   3  5  60000   shared   tenant
payment.webhook      5   100/min  10 5  30000   shared   none
whatsapp.outbound    5   50/min   5  3  30000   per-org  tenant
whatsapp.inbound     10  200/min  20 3  10000   shared   none
voice.transcription  10  20/min   5  3  120000  shared   none
voice.extraction     10  50/min   10 3  30000   shared   none
job.notification     10  100/min  10 3  30000   per-org  none
invoice.pdf          10  50/min   5  3  60000   shared   none
sync.offline         20  100/min  10 5  30000   per-org  key
reconciliation       20  5/min    2  3  300000  shared   queue
cleanup              20  10/min   2  2  60000   shared   none
analytics            20  50/min   5  2  30000   shared   none
scheduler            10  100/min  5  3  10000   shared   none
"""
"""Priority, rate, slots, attempts, timeout in ms, whose the rate is, and the order."""


def test_the_thirteen_queues_are_declared_as_they_were_asked_for() -> None:
    app = importlib.import_module("examples.campotech").app
    rows = {line.split()[0]: line.split()[1:] for line in REGISTRY.strip().splitlines()}
    assert {name: row_of(queue) for name, queue in app.queues.items()} == rows


def row_of(queue: Queue) -> list[str]:
    options = queue.options
    (limit,) = options.limits or options.tenant_limits
    return [
        str(int(options.priority)),
        str(limit),
        str(options.concurrency),
        str(options.retry.attempts),
        str((options.timeout_us or 0) // 1000),
        "shared" if options.limits else "per-org",
        options.order.value,
    ]


def test_the_backoffs_are_those_that_were_asked_for() -> None:
    queues = importlib.import_module("examples.campotech").app.queues
    assert waits_of(queues["afip.invoice"].options.retry) == [30, 120, 300, 900, 1800]
    assert waits_of(queues["whatsapp.outbound"].options.retry) == [5, 15, 60]
    assert waits_of(queues["payment.webhook"].options.retry) == [1, 2, 4, 8, 16]
    assert waits_of(queues["cleanup"].options.retry) == [30, 30]
    assert queues["sync.offline"].options.order is Order.KEY


def waits_of(retry: Retry) -> list[int]:
    return [
        retry.curve.delay_us(attempt, None) // 1_000_000 for attempt in range(1, retry.attempts + 1)
    ]
