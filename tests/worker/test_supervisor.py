"""`faena worker` as operators run it: processes that die are replaced, stops lose nothing."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faena import State
from faena.cli.worker import command
from faena.worker.supervise import worker_process
from faena.worker.supervise.supervisor import Supervisor, SupervisorOptions
from tests._support.command import Service, is_alive, is_frozen
from tests._support.eventually import eventually
from tests._support.ledger import Ledger
from tests._support.valkey import Server, free_port

PROGRAM = "tests._support.cli_app"
TARGET = f"{PROGRAM}:app"


async def test_a_worker_killed_with_minus_nine_is_replaced_and_its_job_recovered(
    program: Any, ledger: Ledger, environ: dict[str, str], tmp_path: Path
) -> None:
    with Service("worker", TARGET, "--instances", "2", log=tmp_path / "log", **environ) as service:
        await serves(service, 2)
        receipt = await program.take.enqueue(1.5)
        await eventually(lambda: ledger.entries("start"))
        (victim,) = {entry.pid for entry in ledger.entries("start")}
        os.kill(victim, signal.SIGKILL)
        assert await receipt.handle.result(timeout="60s") != victim
        await serves(service, 3)
        assert len(service.children()) == 2
        assert "was killed by SIGKILL" in service.log()
        view = await receipt.handle.view()
    assert (view.attempts_made, view.losses) == (1, 1)


async def test_a_stop_lets_running_jobs_end_and_a_second_hands_back_the_rest_unspent(
    program: Any, ledger: Ledger, environ: dict[str, str], tmp_path: Path
) -> None:
    with Service(
        "worker", TARGET, "--grace", "1h", "--json", log=tmp_path / "log", **environ
    ) as service:
        await serves(service, 1)
        short = [await program.take.enqueue(1.0) for _ in range(2)]
        long = [await program.take.enqueue(3600.0) for _ in range(4)]
        await eventually(lambda: len(ledger.entries("start")) == 4)
        service.send(signal.SIGTERM)
        await asyncio.gather(*(receipt.handle.result(timeout="60s") for receipt in short))
        service.send(signal.SIGTERM)
        code, out = await service.ended()
    assert code == 0, service.log()
    assert out == '{"instances":1,"restarts":0,"code":0}\n'
    states = [await receipt.handle.state() for receipt in short + long]
    assert states == [State.COMPLETED] * 2 + [State.READY] * 4
    views = [await receipt.handle.view() for receipt in long]
    assert {(view.attempts_made, view.losses) for view in views} == {(0, 0)}


@pytest.mark.parametrize(
    ("args", "signals"),
    [
        ((), [signal.SIGTERM, signal.SIGINT]),
        (("--no-supervise",), [signal.SIGTERM, signal.SIGINT]),
        (("--grace", "100ms"), [signal.SIGTERM]),
    ],
    ids=["hurried", "hurried without a supervisor", "no time left"],
)
async def test_a_job_that_a_stop_does_not_wait_for_is_handed_back_unspent(
    args: tuple[str, ...],
    signals: list[signal.Signals],
    program: Any,
    ledger: Ledger,
    environ: dict[str, str],
    tmp_path: Path,
) -> None:
    with Service("worker", TARGET, *args, log=tmp_path / "log", **environ) as service:
        receipt = await under_way(service, program, ledger, 3600.0)
        for number in signals:
            service.send(number)
        code, _ = await service.ended()
    assert code == 0, service.log()
    view = await receipt.handle.view()
    assert (view.state, view.attempts_made, view.losses) == (State.READY, 0, 0)


async def test_a_worker_signalled_beside_its_supervisor_is_not_hurried(
    program: Any, ledger: Ledger, environ: dict[str, str], tmp_path: Path
) -> None:
    """An init system sends SIGTERM to every process of a service."""
    with Service("worker", TARGET, log=tmp_path / "log", **environ) as service:
        receipt = await under_way(service, program, ledger, 0.8)
        os.kill(service.children()[0], signal.SIGTERM)
        service.send(signal.SIGTERM)
        code, _ = await service.ended()
    assert code == 0, service.log()
    assert await receipt.handle.state() is State.COMPLETED


async def test_workers_finish_when_their_supervisor_is_killed_with_minus_nine(
    program: Any, ledger: Ledger, environ: dict[str, str], tmp_path: Path
) -> None:
    with Service("worker", TARGET, log=tmp_path / "log", **environ) as service:
        await serves(service, 1)
        (child,) = service.children()
        running = await program.take.enqueue(0.8)
        await eventually(lambda: ledger.entries("start"))
        service.kill()
        assert await running.handle.result(timeout="60s") == child
        await eventually(lambda: not is_alive(child))
        later = await program.take.enqueue(0.0)
    assert "the supervisor has died" in service.log()
    assert await later.handle.state() is State.READY


async def test_a_worker_over_its_memory_limit_finishes_and_is_replaced(
    program: Any, ledger: Ledger, environ: dict[str, str], tmp_path: Path
) -> None:
    with Service("worker", TARGET, "--memory", "300Mi", log=tmp_path / "log", **environ) as service:
        await serves(service, 1)
        (first,) = service.children()
        running = await program.take.enqueue(1.5)
        await (await program.keep.enqueue(300)).handle.result(timeout="60s")
        await serves(service, 2)
        assert await running.handle.result(timeout="60s") == first
        (second,) = service.children()
        assert await (await program.take.enqueue(0.0)).handle.result(timeout="60s") == second
    assert second != first
    assert "ended with code 75 (its memory was over the limit)" in service.log()
    assert len(ledger.entries("start")) == 3


async def test_a_hangup_replaces_the_workers_one_by_one_without_losing_a_job(
    program: Any, ledger: Ledger, environ: dict[str, str], tmp_path: Path
) -> None:
    with Service("worker", TARGET, "--pool", "pair", log=tmp_path / "log", **environ) as service:
        await serves(service, 2)
        old = service.children()
        receipts = [await program.take.enqueue(0.05) for _ in range(60)]
        service.send(signal.SIGHUP)
        least = 2
        while "every worker has been replaced" not in service.log():
            least = min(least, len(service.children()))
            await asyncio.sleep(0.01)
        await asyncio.gather(*(one.handle.result(timeout="60s") for one in receipts))
        assert len(service.children()) == 2
        assert not set(old) & set(service.children())
        service.send(signal.SIGTERM)
        code, _ = await service.ended()
    assert (code, least) == (0, 2), service.log()
    assert set(ledger.jobs("start").values()) == {1}


async def test_a_worker_replaced_while_the_broker_is_away_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(unix=True) as server:
        environ = {"FAENA_URL": server.url, "LEDGER": str(tmp_path / "ledger")}
        monkeypatch.setenv("LEDGER", environ["LEDGER"])
        program = importlib.import_module("tests._support.cli_app")
        with Service("worker", TARGET, log=tmp_path / "log", **environ) as service:
            await serves(service, 1)
            server.kill()
            os.kill(service.children()[0], signal.SIGKILL)
            await eventually(lambda: service.log().count("could not reach the broker") >= 2)
            server.start()
            await eventually(lambda: service.serving() == 2)
            with program.app.override(url=server.url):
                receipt = await program.take.enqueue(0.0)
                assert await receipt.handle.result(timeout="60s") in service.children()
                await program.app.close()
    assert service.log().count("was killed by SIGKILL") == 1


async def test_a_stop_before_any_worker_serves_promises_running_jobs_nothing(
    tmp_path: Path,
) -> None:
    environ = {
        "FAENA_URL": f"valkey://127.0.0.1:{free_port()}",
        "LEDGER": str(tmp_path / "ledger"),
    }
    with Service("worker", TARGET, log=tmp_path / "log", **environ) as service:
        await eventually(lambda: "could not reach the broker" in service.log())
        service.send(signal.SIGINT)
        assert (await service.ended())[0] == 0
    assert "stopping: no worker is ready yet" in service.log()
    assert "running jobs have" not in service.log()


async def test_a_worker_frozen_for_good_is_killed_and_replaced(
    program: Any, ledger: Ledger, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(worker_process, "time", SimpleNamespace(monotonic=lambda: now_s))
    supervisor = Supervisor(command(TARGET), SupervisorOptions(silent_s=0.6))
    running = asyncio.create_task(supervisor.run())
    receipt = await program.freeze.enqueue(0.0)
    await eventually(lambda: any(is_frozen(one.pid) for one in ledger.entries("start")))
    now_s = 1.0
    await receipt.handle.result(timeout="60s")
    supervisor.stop()
    await running
    assert supervisor.restarts == 1
    assert len(ledger.entries("start")) == 2


async def under_way(service: Service, program: Any, ledger: Ledger, seconds: float) -> Any:
    """The receipt of a job that takes so long, once it runs."""
    await serves(service, 1)
    receipt = await program.take.enqueue(seconds)
    await eventually(lambda: ledger.entries("start"))
    return receipt


async def serves(service: Service, times: int) -> None:
    await eventually(lambda: service.serving() == times)
