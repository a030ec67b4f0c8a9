"""G11: whatever a job does to its worker, it is delivered three times at most, then dead, and told.

The supervisor survives, and so do the other jobs. Starts are counted outside the broker.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from faena import State
from faena.job import JobView
from tests._support.command import Service
from tests._support.eventually import eventually
from tests._support.ledger import Ledger

PROGRAM = "tests._support.poison_app"
TARGET = f"{PROGRAM}:app"
KINDS = (
    "sys_exit",
    "recursion",
    "memory_error",
    "keyboard_interrupt",
    "cancelled_error",
    "generator_exit",
    "stop_iteration",
    "unspeakable",
)
UNFIT = ("unencodable", "too_large")
FATAL = ("os_exit.async", "kill_self.thread", "segfault.async", "segfault.thread")


@pytest.fixture
def stuck() -> str:
    """How long an event loop may stand still: longer than the machine keeps it from going on."""
    return "60s"


@pytest.fixture
async def service(environ: dict[str, str], stuck: str, tmp_path: Path) -> AsyncIterator[Service]:
    with Service("worker", TARGET, "--stuck", stuck, log=tmp_path / "log", **environ) as service:
        await eventually(lambda: service.serving() == 1)
        yield service
        assert service.is_alive, service.log()
        service.send(signal.SIGTERM)
        code, _ = await service.ended()
        assert code == 0, service.log()


async def test_nothing_a_handler_raises_or_returns_costs_more_than_its_own_attempts(
    program: Any, ledger: Ledger, service: Service
) -> None:
    jobs = {
        f"{kind}.{place}": await program.poison.tasks[f"{kind}.{place}"].enqueue()
        for kind in KINDS
        for place in ("async", "thread")
    }
    unfit = [
        await program.poison.tasks[f"{kind}.{place}"].enqueue()
        for kind in UNFIT
        for place in ("async", "thread")
    ]
    others = await program.breathe.enqueue_many(range(50))
    dead = {name: await _dead(receipt) for name, receipt in jobs.items()}
    started = ledger.jobs("start")
    for name, view in dead.items():
        assert started[view.id] == 3, (name, view)
        assert len(view.errors) == 3, (name, view)
        assert view.losses == 0, (name, view)
    assert {started[receipt.id] for receipt in unfit} == {1}
    assert [await one.handle.result("60s") for one in unfit] == [None] * 4
    await _all_done(others)
    assert len(service.children()) == 1
    assert service.serving() == 1, service.log()


@pytest.mark.parametrize("task", FATAL)
async def test_a_job_that_kills_its_process_is_dead_after_three_deliveries(
    task: str, program: Any, ledger: Ledger, service: Service
) -> None:
    receipt = await program.deadly.tasks[task].enqueue()
    await eventually(lambda: ledger.jobs("start")[receipt.id])
    others = await program.breathe.enqueue_many(range(50))
    view = await _dead(receipt)
    assert ledger.jobs("start")[receipt.id] <= 3
    assert (view.attempts_made, view.losses) == (0, 3)
    assert [error.code for error in view.errors] == ["WORKER_LOST"] * 3
    assert len({error.worker for error in view.errors}) == 3
    await _all_done(others)


async def test_a_job_that_dies_in_a_process_of_its_own_costs_its_worker_nothing(
    program: Any, ledger: Ledger, service: Service
) -> None:
    receipt = await program.die_apart.enqueue()
    view = await _dead(receipt)
    assert ledger.jobs("start")[receipt.id] == 3
    assert (view.losses, [error.code for error in view.errors]) == (0, ["WORKER_LOST"] * 3)
    assert service.serving() == 1, service.log()


@pytest.mark.parametrize("stuck", ["2s"])
async def test_a_job_that_blocks_the_loop_far_beyond_its_time_costs_the_process_and_is_dead(
    program: Any, ledger: Ledger, service: Service
) -> None:
    receipt = await program.block.enqueue()
    view = await _dead(receipt)
    assert ledger.jobs("start")[receipt.id] <= view.losses == 3
    await _all_done(await program.breathe.enqueue_many(range(20)))
    assert "ended with code 70 (its event loop was stuck)" in service.log()
    assert "has been blocked" in service.log()
    assert "poison_app.py" in service.log()  # where it stood


async def test_a_handler_that_never_ends_is_settled_without_it_and_does_not_keep_the_process(
    program: Any, ledger: Ledger, service: Service
) -> None:
    receipts = [await program.swallow.enqueue(), await program.hang.enqueue()]
    for receipt in receipts:
        view = await _dead(receipt)
        assert ledger.jobs("start")[receipt.id] == 1
        assert [error.code for error in view.errors] == ["TIMEOUT"]
    await _all_done(await program.breathe.enqueue_many(range(20)))
    assert service.serving() == 1, service.log()


async def _dead(receipt: Any) -> JobView:
    async def is_dead() -> bool:
        return await receipt.handle.state() is State.DEAD

    await eventually(is_dead)
    view = await receipt.handle.view()
    assert view is not None
    return view


async def _all_done(receipts: list[Any]) -> None:
    results = await asyncio.gather(*(one.handle.result(timeout="60s") for one in receipts))
    assert results == list(range(len(receipts)))
