"""What a program that cannot reach its broker, or only in part, is told and when."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from faena import Faena, Task
from faena.engine import Address, Wire
from faena.errors import ConfigError, StoreRejected, StoreUnavailable
from faena.inspection.doctor import examine
from tests._support.command import Service
from tests._support.eventually import eventually
from tests._support.lossy_proxy import LossyProxy
from tests._support.lua import COUNT
from tests._support.tls import Authority
from tests._support.valkey import Server, free_port


@pytest.fixture
def server(tcp_server: Server) -> Server:
    return tcp_server


def task_on(app: Faena) -> Task[None, None]:
    @app.queue("q").task
    async def nothing() -> None: ...

    return nothing


async def reaching(server: Server, patience: str) -> tuple[Faena, Task[None, None]]:
    """An app that has been connected, and its task."""
    app = Faena("shop", server.url, patience=patience)
    task = task_on(app)
    await task.enqueue()
    return app, task


async def produce(app: Faena) -> None:
    assert (await task_on(app).enqueue()).status == "created"


async def work(app: Faena) -> None:
    task_on(app)
    await app.run_worker(until_empty=True)


async def inspect(app: Faena) -> None:
    task_on(app)
    assert (await app.queues["q"].overview()).counts["ready"] == 0


@pytest.mark.parametrize("use", [produce, work, inspect])
async def test_a_lost_reply_at_the_first_use_is_survived_whichever_it_is(
    use: Callable[[Faena], AsyncIterator[None]], server: Server
) -> None:
    for lost in range(8):
        requests = itertools.count()
        async with LossyProxy(server.port, lambda _, n=requests, at=lost: next(n) == at) as proxy:
            app = Faena("shop", proxy.url, namespace=f"{use.__name__}{lost}")
            await use(app)
            await app.close()
            assert proxy.lost == (lost < next(requests))


# -- patience -------------------------------------------------------------------------------------


async def test_a_producer_is_told_in_time_what_failed_and_that_nothing_was_enqueued() -> None:
    app = Faena("shop", f"redis://127.0.0.1:{free_port()}", patience="300ms")
    with pytest.raises(StoreUnavailable, match=r"after 0\.\d s: .*Connect.*nothing was") as told:
        await task_on(app).enqueue()
    assert not told.value.is_outcome_unknown


async def test_what_was_sent_and_not_answered_is_told_as_unknown_and_what_waited_as_not_sent() -> (
    None
):
    with Server("appendonly no") as server:
        app, task = await reaching(server, "400ms")
        server.pause()
        sent = asyncio.create_task(task.enqueue())
        await asyncio.sleep(0)
        quick = asyncio.create_task(task.enqueue(patience="50ms"))
        with pytest.raises(StoreUnavailable, match=r"queue q.*; nothing was enqueued") as told:
            await quick
        assert not told.value.is_outcome_unknown
        with pytest.raises(StoreUnavailable, match=r"after 0\.\d s: .*whether it was") as told:
            await sent
        assert told.value.is_outcome_unknown
        with pytest.raises(StoreUnavailable, match=r"after 0\.[12] s"):
            await task.enqueue(patience="100ms")
        server.resume()
        await app.close()


async def test_a_list_that_is_cut_off_says_how_much_of_it_is_there() -> None:
    with Server("appendonly no") as server:
        app, task = await reaching(server, "2s")
        enqueues = itertools.count()

        def stop_at_the_third(request: bytes) -> bool:
            if b"_enqueue" in request and next(enqueues) == 2:
                server.pause()
            return False

        async with LossyProxy(server.port, stop_at_the_third) as proxy:
            with app.override(url=proxy.url):
                with pytest.raises(StoreUnavailable, match=r"the first \d+ of 1500 jobs") as told:
                    await task.enqueue_many([task.draft() for _ in range(1500)])
                server.resume()
                receipts = told.value.receipts
                assert f"the first {len(receipts)} of" in str(told.value)
                assert {await receipt.handle.state() for receipt in receipts[::100]} == {"ready"}
                await app.close()
        await app.close()


async def test_what_a_closing_program_had_sent_is_told_as_unknown() -> None:
    with Server("appendonly no") as server:
        app, task = await reaching(server, "10s")
        server.pause()
        calls = [asyncio.create_task(task.enqueue()) for _ in range(3)]
        await asyncio.sleep(0.05)  # the first is on its way now, the others wait for it
        await app.close()
        first, *others = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(first, StoreUnavailable)
        assert first.is_outcome_unknown
        for error in others:
            assert isinstance(error, StoreUnavailable)
            assert not error.is_outcome_unknown
            assert "nothing was enqueued" in str(error)
        server.resume()


async def test_a_call_may_be_more_patient_than_its_app() -> None:
    with Server("appendonly no") as server:
        app, task = await reaching(server, "2s")
        server.pause()
        patient = asyncio.create_task(task.enqueue(patience="30s"))
        with pytest.raises(StoreUnavailable):
            await app.queues["q"].counts()
        server.resume()
        assert (await patient).status == "created"
        await app.close()


@pytest.mark.parametrize("patience", ["soon", 5, "-1s"])
async def test_a_patience_that_is_no_duration_is_refused(patience: str) -> None:
    with pytest.raises(ConfigError, match="patience must be"):
        Faena("shop", "redis://localhost", patience=patience)
    with pytest.raises(ConfigError, match="patience must be"):
        await task_on(Faena("shop", "redis://localhost")).enqueue(patience=patience)


async def test_a_bound_ends_with_the_call_that_has_it(server: Server) -> None:
    """The first use begins tasks that outlive it, and they are not bound by its patience."""
    app = Faena("shop", server.url)
    task = task_on(app)
    await task.enqueue(patience="5s")
    assert (await app.runtime()).engine.patience_s == 5.0
    assert (await app.runtime()).patient_engine.patience_s == 30.0
    assert (await task.enqueue()).status == "created"
    await app.close()


# -- a worker without its broker -------------------------------------------------------------------

SHOP = """
from faena import Faena

app = Faena("shop")
mail = app.queue("mail")
"""


@pytest.mark.parametrize("supervised", [[], ["--no-supervise"]], ids=["supervised", "alone"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_worker_waits_for_its_broker_says_so_and_ends_when_told(
    supervised: list[str], number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    url = f"redis://127.0.0.1:{free_port()}"
    command = ["worker", "shop:app", *supervised]
    with Service(*command, log=tmp_path / "log", cwd=tmp_path, FAENA_URL=url) as service:
        await eventually(lambda: "waiting for the broker: " in service.log())
        service.send(number)
        code, _ = await service.ended()
    assert code == 0, service.log()


async def test_a_worker_serves_once_its_broker_is_there(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    port = free_port()
    url = f"redis://127.0.0.1:{port}"
    with Service(
        "worker", "shop:app", log=tmp_path / "log", cwd=tmp_path, FAENA_URL=url
    ) as service:
        await eventually(lambda: "waiting for the broker: " in service.log())
        with Server("appendonly no", port=port):
            await eventually(lambda: service.serving() == 1)
            service.send(signal.SIGTERM)
            code, _ = await service.ended()
    assert code == 0, service.log()


# -- the wrong protocol ---------------------------------------------------------------------------


async def test_tls_to_a_port_without_it_says_which_url_to_use(server: Server) -> None:
    app = Faena("shop", f"rediss://127.0.0.1:{server.port}", patience="500ms")
    with pytest.raises(StoreRejected, match="this port does not speak TLS: use valkey://"):
        await app.connect()


async def test_a_plain_url_for_a_port_with_tls_says_which_to_use(
    server: Server, tmp_path: Path
) -> None:
    async with Authority(tmp_path).terminator(server.port) as proxy:
        app = Faena("shop", f"redis://127.0.0.1:{proxy.port}", patience="500ms")
        with pytest.raises(StoreRejected, match="this port speaks TLS: use valkeys://"):
            await app.connect()


# -- without functions ----------------------------------------------------------------------------

REFUSED = {
    "no FUNCTION and no FCALL": ("-function", "-fcall"),
    "no FUNCTION": ("-function",),
    "no FCALL": ("-fcall",),
}


@pytest.mark.parametrize("rules", REFUSED.values(), ids=REFUSED)
async def test_where_a_user_may_not_use_functions_plain_scripts_do_the_same(
    rules: tuple[str, ...], server: Server
) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "guest", "reset", "on", ">sesame", "~*", "&*")
        client.execute_command("ACL", "SETUSER", "guest", "+@all", *rules)
    await _works_plainly(f"redis://guest:sesame@127.0.0.1:{server.port}")


async def test_where_a_server_has_no_functions_plain_scripts_do_the_same() -> None:
    with Server('rename-command FUNCTION ""', 'rename-command FCALL ""') as server:
        await _works_plainly(server.url)


async def _works_plainly(url: str) -> None:
    app = Faena("shop", url)
    done: list[int] = []

    @app.queue("q").task
    async def add(number: int) -> int:
        done.append(number)
        return number

    receipts = await add.enqueue_many(range(20))
    await app.run_worker(until_empty=True)
    assert sorted(done) == list(range(20))
    assert await receipts[3].handle.result(timeout="60s") == 3
    wire = (await app.runtime()).engine.wire
    assert wire.is_plain
    stats = (await wire.call("INFO", "commandstats")).decode()
    assert stats.count("cmdstat_evalsha:") == 1
    findings = {one.name: one for one in await examine(wire, namespace="shop")}
    assert (findings["functions"].level, findings["writes"].level) == ("warn", "ok")
    assert "FCALL" in (findings["functions"].advice or "")
    await app.queues["q"].obliterate(force=True)
    await app.close()


async def test_a_user_who_may_not_run_scripts_at_all_is_told_of_functions(server: Server) -> None:
    with server.client() as client:
        rules = ("+@all", "-@scripting")
        client.execute_command("ACL", "SETUSER", "mute", "on", ">sesame", "~*", "&*", *rules)
    wire = Wire(Address.parse(f"redis://mute:sesame@127.0.0.1:{server.port}"))
    with pytest.raises(StoreRejected, match="'fcall'"):
        await wire.run(COUNT, ["k"], [], patience_s=0)
    assert not wire.is_plain
    await wire.close()


async def test_a_script_that_a_plain_server_has_forgotten_is_sent_again(server: Server) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "guest", "on", ">sesame", "~*", "+@all", "-fcall")
    wire = Wire(Address.parse(f"redis://guest:sesame@127.0.0.1:{server.port}"))
    assert await wire.run(COUNT, ["k"], [], patience_s=0) == 1
    with server.client() as client:
        client.script_flush()
    assert await wire.run(COUNT, ["k"], [], patience_s=0) == 2
    await wire.close()
