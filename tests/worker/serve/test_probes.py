"""What probes are told of real worker processes: healthy, ready, stalled, frozen, shutting down."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from tests._support.command import Service, run
from tests._support.eventually import eventually
from tests._support.probe import answers, get, send
from tests._support.proxy import Proxy
from tests._support.valkey import Server, free_port

PROGRAM = "tests._support.cli_app"
TARGET = f"{PROGRAM}:app"


@pytest.fixture
def port() -> int:
    return free_port()


def serve(tmp_path: Path, port: int, *args: str, **environ: str) -> Service:
    log = tmp_path / "log"
    return Service("worker", TARGET, *args, log=log, **{"FAENA_SERVE": str(port), **environ})


async def is_healthy(port: int) -> bool:
    return await answers(port, "/health", 200)


async def is_ill(port: int, status: str) -> bool:
    told = await get(port, "/health")
    return told.status == 503 and told.document["status"] == status


@pytest.mark.parametrize("args", [("--instances", "2"), ("--no-supervise",)])
async def test_a_worker_is_ready_and_healthy_until_it_is_told_to_stop(
    args: tuple[str, ...], program: Any, environ: dict[str, str], port: int, tmp_path: Path
) -> None:
    with serve(tmp_path, port, *args, **environ) as service:
        await eventually(lambda: answers(port, "/ready", 200))
        health = await get(port, "/health")
        assert (health.status, health.document["status"]) == (200, "ok"), health
        assert (health.document["redis"], health.document["queues"]) == ("ok", "ok")
        assert (
            len(health.document["processes"])
            == health.document["wanted"]
            == len(service.children() or [service.pid])
        )
        redis = (await get(port, "/health/redis")).document
        assert redis["status"] == "ok"
        assert redis["latency_ms"] > 0
        assert (await get(port, "/scaling")).status == 200
        assert (await get(port, "/")).status == 404
        await program.take.enqueue(3600.0)
        await eventually(lambda: _running(port))
        service.send(signal.SIGTERM)
        await eventually(lambda: answers(port, "/ready", 503))
        assert (await get(port, "/ready")).document["status"] == "stopping"
        await eventually(lambda: _is_stopping(port))
        service.send(signal.SIGTERM)
        code, _ = await service.ended()
    assert code == 0, service.log()
    assert (await get(port, "/health")).status == 0


async def _running(port: int) -> int:
    told = (await get(port, "/health")).document
    return sum(one["running"] for one in told["processes"])


async def _is_stopping(port: int) -> bool:
    told = await get(port, "/health")
    return (told.status, told.document["status"]) == (200, "stopping")


async def test_a_worker_that_waits_for_its_broker_is_neither_ready_nor_healthy(
    tmp_path: Path, port: int
) -> None:
    environ = {"FAENA_URL": f"redis://127.0.0.1:{free_port()}/0", "LEDGER": str(tmp_path / "l")}
    with serve(tmp_path, port, **environ) as service:
        await eventually(lambda: "waiting for the broker" in service.log())
        assert (await get(port, "/ready")).document["status"] == "starting"
        assert await is_ill(port, "starting")
        assert (await get(port, "/metrics")).status == 503


async def test_one_frozen_process_is_told_with_its_pid_and_comes_back(
    program: Any, environ: dict[str, str], port: int, tmp_path: Path
) -> None:
    with serve(tmp_path, port, "--instances", "2", **environ) as service:
        await eventually(lambda: answers(port, "/ready", 200))
        victim = service.children()[0]
        os.kill(victim, signal.SIGSTOP)
        try:
            await eventually(lambda: is_ill(port, "silent"))
            told = await get(port, "/health")
            assert f"worker {victim}: it does not answer" in told.problems
            assert (await get(port, "/metrics")).status == 200
        finally:
            os.kill(victim, signal.SIGCONT)
        await eventually(lambda: is_healthy(port))


@pytest.mark.parametrize("args", [(), ("--no-supervise",)])
async def test_a_blocked_event_loop_is_told_while_it_is_blocked(
    args: tuple[str, ...], program: Any, environ: dict[str, str], port: int, tmp_path: Path
) -> None:
    with serve(tmp_path, port, *args, **environ):
        await eventually(lambda: answers(port, "/ready", 200))
        receipt = await program.block.enqueue(600.0)
        await eventually(lambda: is_ill(port, "silent"))
        assert "its event loop is blocked" in (await get(port, "/health")).problems
        (tmp_path / "ledger.free").touch()
        await receipt.handle.result(timeout="60s")
        await eventually(lambda: is_healthy(port))


async def test_a_frozen_broker_is_told_and_forgotten_when_it_answers_again(
    tmp_path: Path, port: int
) -> None:
    with Server() as server:
        environ = {"FAENA_URL": server.url, "LEDGER": str(tmp_path / "ledger")}
        with serve(tmp_path, port, **environ):
            await eventually(lambda: is_healthy(port))
            server.pause()
            try:
                await eventually(lambda: is_ill(port, "unreachable"))
                redis = await get(port, "/health/redis")
                assert (redis.status, redis.document["latency_ms"]) == (503, None)
                assert "did not run a script" in redis.document["problem"]
                assert (await get(port, "/ready")).status == 200
            finally:
                server.resume()
            await eventually(lambda: is_healthy(port))


@pytest.fixture
async def proxy(tcp_server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(tcp_server.port) as proxy:
        yield proxy


@pytest.mark.parametrize("forgets", [False, True], ids=["resumed flows", "forgotten flows"])
async def test_a_link_that_is_cut_silently_is_told_and_consumption_resumes_after_its_return(
    forgets: bool,
    proxy: Proxy,
    tcp_server: Server,
    port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    from tests._support import cli_app as program

    environ = {"FAENA_URL": proxy.url, "LEDGER": str(tmp_path / "ledger")}
    with serve(tmp_path, port, **environ), program.app.override(url=tcp_server.url):
        try:
            await eventually(lambda: is_healthy(port))
            proxy.silence()
            await eventually(lambda: is_ill(port, "unreachable"))
            receipt = await program.take.enqueue(0.0)
            proxy.speak(forgets=forgets)
            await eventually(lambda: is_healthy(port))
            await receipt.handle.result(timeout="60s")
        finally:
            await program.app.close()


@pytest.mark.parametrize("args", [(), ("--no-supervise",)])
async def test_a_chosen_port_that_is_taken_is_an_error(
    args: tuple[str, ...], environ: dict[str, str], tmp_path: Path, port: int
) -> None:
    async with await _taken("127.0.0.1", port):
        with serve(tmp_path, port, *args, **environ) as service:
            code, _ = await service.ended()
    assert code == 2
    (line,) = service.log().splitlines()
    assert f"got 127.0.0.1:{port}: another process has the port" in line


@pytest.mark.parametrize("args", [(), ("--no-supervise",)])
async def test_a_worker_does_without_the_usual_port_if_that_is_taken(
    args: tuple[str, ...], program: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    host = f"127.{os.getpid() >> 16 & 255}.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}"
    async with await _taken(host, 3001):
        with serve(tmp_path, 0, "--serve", host, *args, **environ) as service:
            await eventually(lambda: service.serving() == 1)
            receipt = await program.take.enqueue(0.0)
            await receipt.handle.result(timeout="60s")
            said = [line for line in service.log().splitlines() if " WARNING " in line]
    assert len(said) == 1, said
    assert f"cannot listen on {host}:3001: another process has the port" in said[0]


def _taken(host: str, port: int) -> Awaitable[asyncio.Server]:
    return asyncio.start_server(lambda *_: None, host, port)


async def test_nothing_is_served_where_it_is_off(
    program: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    with Service("worker", TARGET, "--serve", "off", log=tmp_path / "log", **environ) as service:
        await eventually(lambda: service.serving() == 1)
        receipt = await program.take.enqueue(0.0)
        await receipt.handle.result(timeout="60s")
    assert "/health" not in service.log()


async def test_hostile_clients_hold_up_neither_probes_nor_jobs(
    program: Any, environ: dict[str, str], port: int, tmp_path: Path
) -> None:
    with serve(tmp_path, port, **environ) as service:
        await eventually(lambda: is_healthy(port))
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(400)]
        attacks = [b"\x00" * 50_000, b"GET / HTTP/1.1\r\n" * 5_000]
        try:
            await asyncio.gather(*(send(port, data) for data in attacks * 20))
            _, writer = idle[-1]
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n" * 1_000)  # and never reads
            receipts = [await program.take.enqueue(0.0) for _ in range(20)]
            for receipt in receipts:
                await receipt.handle.result(timeout="60s")
            assert await is_healthy(port)
        finally:
            for _, writer in idle:
                writer.transport.abort()
        assert "Traceback" not in service.log()


def test_an_address_that_cannot_be_is_refused_by_a_sentence(tmp_path: Path) -> None:
    ran = run("worker", TARGET, "--serve", "nowhere:99999", LEDGER=str(tmp_path / "ledger"))
    assert ran.code == 2
    assert "it must be a port, host:port or 'off', such as '3001'" in ran.err
