"""How an app stands, asked by its own program: with a broker, and with one that does not answer."""

from __future__ import annotations

import asyncio

import pytest

from faena import Faena
from faena.errors import ConfigError
from tests._support.eventually import eventually
from tests._support.valkey import Server, free_port


async def test_an_app_with_a_worker_is_well(app: Faena) -> None:
    mail = app.queue("mail")
    mail.task(name="send")(lambda: None)
    assert (await app.health(timeout="60s")).is_ok
    assert not (await app.health(timeout="60s")).is_served
    worker = await app.worker()
    running = asyncio.create_task(worker.run())

    async def is_served() -> bool:
        return (await app.health(timeout="60s")).is_served

    await eventually(is_served)
    health = await app.health(timeout="60s")
    assert health.latency_ms is not None
    assert (health.is_reachable, health.problem, set(health.queues)) == (True, None, {"mail"})
    assert len(health.queues["mail"].workers) == 1
    worker.stop()
    await running


async def test_what_waits_and_what_holds_it_is_told(app: Faena) -> None:
    mail = app.queue("mail")
    send = mail.task(name="send")(lambda: None)
    await send.enqueue_many([send.draft()] * 3)
    await mail.pause(reason="deploy")
    queue = (await app.health(timeout="60s")).queues["mail"]
    assert (queue.is_ready, queue.waiting, queue.holds) == (True, 3, ("deploy",))


async def test_a_remote_queue_is_ready_once_it_is_declared(
    app: Faena, valkey: Server, namespace: str
) -> None:
    api = Faena("api", valkey.url, namespace=namespace)
    api.remote_queue("mail")
    health = await api.health(timeout="60s")
    assert (health.is_reachable, health.is_ok, health.queues["mail"].is_ready) == (
        True,
        False,
        False,
    )
    send = app.queue("mail").task(name="send")(lambda: None)
    await send.enqueue()
    assert (await api.health(timeout="60s")).is_ok
    await api.close()


async def test_a_broker_that_is_not_there_is_an_answer(app: Faena) -> None:
    lost = Faena("shop", f"redis://127.0.0.1:{free_port()}")
    lost.queue("mail")
    health = await lost.health(timeout="1s")
    assert not health.is_reachable
    assert not health.is_ok
    assert "Connect call failed" in (health.problem or "")
    await lost.close()


async def test_a_broker_that_says_nothing_costs_no_more_than_the_timeout() -> None:
    held: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    app = Faena("shop", f"redis://127.0.0.1:{port}")
    health = await app.health(timeout="200ms")
    assert "could not connect in time" in (health.problem or "")
    await app.close()
    for writer in held:
        writer.close()
    silent.close()
    await silent.wait_closed()


async def test_a_timeout_that_is_none_is_refused(app: Faena) -> None:
    with pytest.raises(ConfigError, match="timeout must be"):
        await app.health(timeout="soon")


async def test_the_doctor_examines_the_apps_broker(app: Faena) -> None:
    findings = {finding.name: finding for finding in await app.doctor()}
    assert findings["writes"].level == "ok"
    assert findings["persistence"].level == "fail"
    lost = Faena("shop", f"redis://127.0.0.1:{free_port()}")
    (finding,) = await lost.doctor()
    assert (finding.name, finding.level) == ("connection", "fail")
    await lost.close()


def test_both_can_be_asked_without_an_event_loop(valkey: Server, namespace: str) -> None:
    app = Faena("shop", valkey.url, namespace=namespace)
    app.queue("mail")
    assert app.sync.health(timeout="60s").is_ok
    assert {finding.name for finding in app.sync.doctor()} >= {"writes", "version"}
    app.sync.close()


async def test_a_queue_that_is_held_is_not_served_though_it_has_a_worker(app: Faena) -> None:
    mail = app.queue("mail")
    mail.task(name="send")(lambda: None)
    worker = await app.worker()
    running = asyncio.create_task(worker.run())

    async def is_served() -> bool:
        return (await app.health(timeout="60s")).is_served

    await eventually(is_served)
    await mail.pause(reason="deploy")
    health = await app.health(timeout="60s")
    assert health.queues["mail"].workers
    assert (health.is_ok, health.is_served) == (True, False)
    worker.stop()
    await running
