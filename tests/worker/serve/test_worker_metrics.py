"""`/metrics` of workers: all processes added up, and totals that never decrease."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from prometheus_client.openmetrics import parser as modern

from faena.telemetry.measured import Exemplar, Measured
from faena.worker.serve.channel import Told, read_told, told
from faena.worker.serve.totals import Totals
from tests._support.command import Service
from tests._support.eventually import eventually
from tests._support.probe import answers, get, samples
from tests._support.valkey import Server, free_port

PROGRAM = "tests._support.cli_app"
TARGET = f"{PROGRAM}:app"
STARTED = "faena_attempts_started_total"
RUNS = "faena_job_run_seconds_count"
TAKE = ("work", "take")


async def counted(port: int, name: str) -> float:
    """Of one task; 0 while there is no page, or it has no such sample."""
    page = await get(port, "/metrics")
    return samples(page.body, name).get(TAKE, 0.0) if page.status == 200 else 0.0


async def test_totals_do_not_decrease_when_a_process_is_killed_with_minus_nine(
    program: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "log"
    environ |= {"FAENA_SERVE": str(port)}
    with Service("worker", TARGET, "--instances", "3", log=log, **environ) as service:
        await eventually(lambda: answers(port, "/ready", 200))
        before = service.children()
        await program.take.enqueue_many([0.05] * 120)
        await eventually(lambda: _at_least(port, 120))
        seen = [await counted(port, STARTED)]
        for victim in before:
            os.kill(victim, signal.SIGKILL)
            for _ in range(10):
                seen.append(await _present(port))
                await asyncio.sleep(0.02)
        await eventually(lambda: answers(port, "/ready", 200))
        await program.take.enqueue_many([0.05] * 60)
        await eventually(lambda: _at_least(port, 180))
        seen.append(await counted(port, STARTED))
    assert not set(before) & set(service.children())
    assert seen == sorted(seen)
    assert seen[0] >= 120


async def _at_least(port: int, number: int) -> bool:
    return await counted(port, STARTED) >= number and await counted(port, RUNS) >= number


async def _present(port: int) -> float:
    """What the next page says: there is one also while no process serves."""
    page = await get(port, "/metrics")
    assert page.status == 200, page
    return samples(page.body, STARTED)[TAKE]


async def test_a_page_has_numbers_of_the_broker_and_can_be_openmetrics(
    program: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "log"
    environ |= {"FAENA_SERVE": str(port)}
    with Service("worker", TARGET, "--no-supervise", log=log, **environ):
        await eventually(lambda: answers(port, "/ready", 200))
        await program.take.enqueue_many([0.0] * 10)
        await eventually(lambda: _at_least(port, 10))
        page = await get(port, "/metrics", accept="application/openmetrics-text")
    assert "Content-Type: application/openmetrics-text" in page.head
    names = [one.name for one in modern.text_string_to_metric_families(page.body.decode())]
    assert {"faena_jobs", "faena_broker_up", "faena_attempts_started"} <= set(names)
    assert len(names) == len(set(names))


async def test_what_processes_have_measured_is_told_while_the_broker_is_frozen(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    from tests._support import cli_app as program

    port, log = free_port(), tmp_path / "log"
    with Server() as server, program.app.override(url=server.url):
        environ = {"FAENA_URL": server.url, "LEDGER": str(tmp_path / "ledger")}
        with Service("worker", TARGET, log=log, FAENA_SERVE=str(port), **environ) as service:
            await eventually(lambda: answers(port, "/ready", 200))
            await program.take.enqueue_many([0.0] * 10)
            await eventually(lambda: _at_least(port, 10))
            await program.app.close()
            server.pause()
            try:
                await eventually(lambda: _is_down(port))
                assert await counted(port, STARTED) == 10
                (child,) = service.children()
                os.kill(child, signal.SIGSTOP)  # now nobody can ask the broker at all
                await eventually(lambda: answers(port, "/health", 503))
                assert await counted(port, STARTED) == 10
                os.kill(child, signal.SIGCONT)
            finally:
                server.resume()


async def _is_down(port: int) -> bool:
    page = await get(port, "/metrics")
    return samples(page.body, "faena_broker_up").get(()) == 0.0


def _measured(number: int) -> Measured:
    one = Measured()
    one.started = one.completed = number
    for _ in range(number):
        one.waits.add(1_000)
        one.runs.add(2_000)
        one.totals.add(3_000)
    one.exemplar = Exemplar("0" * 31 + "1", 2_000, 1.5)
    return one


def test_what_one_process_tells_is_read_as_it_was_measured() -> None:
    message = Told(told({TAKE: _measured(5)}))
    (one,) = read_told(message.tasks).values()
    assert one.packed() == _measured(5).packed()
    assert one.exemplar == _measured(5).exemplar


def test_what_a_process_told_stays_when_it_has_ended_and_is_not_counted_twice() -> None:
    totals = Totals()
    first, second = object(), object()
    totals.tell(first, {TAKE: _measured(3)})
    totals.tell(first, {TAKE: _measured(5)})
    totals.tell(second, {TAKE: _measured(1), ("work", "keep"): _measured(2)})
    assert totals.together()[TAKE].started == 6
    for _ in range(2):
        totals.end(first)
        together = totals.together()
        assert together[TAKE].started == 6
        assert together[TAKE].runs.count == 6
    totals.end(second)
    assert totals.together()[TAKE].started == 6
    assert totals.together()["work", "keep"].started == 2
