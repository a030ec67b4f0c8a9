"""Libraries of versions that no worker runs leave the servers, and whoever uses one has it back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena import Faena
from faena.engine import Address, Engine, Wire
from faena.engine.script_library import library_name, load
from faena.worker.libraries import OldLibraries
from faena.worker.presence import about_this_process
from tests._support.eventually import eventually
from tests._support.server_group import ClusterGroup
from tests._support.valkey import Server
from tests._support.working import serving

OLD, NAMED, OTHER = "faena_aaaaaaaaaa", "faena_bbbbbbbbbb", "faena_of_somebody"
CODE = "#!lua name={0}\nredis.register_function('{0}_f', function() return 1 end)"


@pytest.fixture
def server(tcp_server: Server) -> Server:
    """One that has no libraries of other tests."""
    return tcp_server


@pytest.fixture
async def engine(server: Server) -> AsyncIterator[Engine]:
    engine = Engine(Wire(Address.parse(server.url)), namespace="shop")
    engine.know("q", None)
    for name in (OLD, NAMED, OTHER):
        await put(engine, name)
    await engine.wire.call("FUNCTION", "LOAD", load("enqueue").library)
    await engine.command("HSET", "q", "about", "w", f"5 17 0.1.0 {NAMED} box")
    yield engine
    await engine.wire.close()


async def put(engine: Engine, name: str) -> None:
    await engine.wire.call("FUNCTION", "LOAD", CODE.format(name))


async def there(engine: Engine) -> set[str]:
    listed = await engine.wire.call("FUNCTION", "LIST")
    return {library[1].decode() for library in listed}


def keeper(engine: Engine) -> OldLibraries:
    async def shards() -> list[str]:
        return ["q"]

    return OldLibraries(engine, shards)


async def test_what_no_worker_has_named_at_two_looks_is_removed(engine: Engine) -> None:
    old = keeper(engine)
    assert await old.look() == []
    assert await old.look() == [OLD]
    assert await there(engine) == {NAMED, OTHER, library_name()}
    assert await old.look() == []


async def test_what_a_worker_names_meanwhile_stays(engine: Engine) -> None:
    old = keeper(engine)
    await old.look()
    await engine.command("HSET", "q", "about", "late", f"5 18 0.1.0 {OLD} box")
    assert await old.look() == []
    assert OLD in await there(engine)


async def test_what_comes_back_is_in_use_and_stays(engine: Engine) -> None:
    old = keeper(engine)
    for _ in range(2):
        await old.look()
    await put(engine, OLD)
    for _ in range(3):
        assert await old.look() == []
    assert OLD in await there(engine)


@pytest.mark.parametrize("rule", ["-function|delete", "-function|list", "-function"])
async def test_where_it_is_not_permitted_nothing_happens(
    engine: Engine, server: Server, rule: str
) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "guest", "reset", "on", ">sesame", "~*", "&*")
        client.execute_command("ACL", "SETUSER", "guest", "+@all", rule)
    wire = Wire(Address.parse(f"redis://guest:sesame@127.0.0.1:{server.port}"))
    old = keeper(Engine(wire, namespace="shop"))
    for _ in range(3):
        assert await old.look() == []
    await wire.close()
    assert OLD in await there(engine)


async def test_a_server_that_is_away_is_looked_at_later(engine: Engine, server: Server) -> None:
    old = keeper(engine)
    await old.look()
    engine.patience_s = 0.1
    server.stop()
    try:
        assert await old.look() == []
    finally:
        server.start()


async def test_every_node_of_a_cluster_is_looked_at() -> None:
    with ClusterGroup() as cluster:
        engine = Engine(Wire(Address.parse(cluster.url)), namespace="shop")
        nodes = await engine.wire.nodes(60)
        for node in nodes:
            await engine.wire.call("FUNCTION", "LOAD", CODE.format(OLD), node=node)
        old = keeper(engine)
        await old.look()
        assert await old.look() == [OLD] * len(nodes)
        await engine.wire.close()


async def test_a_worker_names_its_library_where_it_serves(server: Server) -> None:
    app = Faena("shop", server.url)
    app.queue("q").task(name="noop")(_noop)
    async with app, serving(app):
        engine = (await app.runtime()).engine

        async def named() -> bool:
            said = await engine.command("HVALS", "q", "about")
            return [one.split(b" ")[3].decode() for one in said] == [library_name()]

        await eventually(named)
    assert about_this_process(3).split(" ")[2] == library_name()


async def test_who_misses_its_library_has_it_back_with_the_same_call(server: Server) -> None:
    """A producer, also of lone jobs, a reader, and a worker that waits."""
    app = Faena("shop", server.url)
    noop = app.queue("q").task(name="noop")(_noop)
    async with app, serving(app):
        wire = (await app.runtime()).engine.wire
        for number in range(3):
            await (await noop.enqueue(number)).handle.result(timeout="60s")
            await wire.call("FUNCTION", "FLUSH")
        lone = await noop.enqueue(3)  # left in the stream of arrivals, for a worker that waits
        assert await lone.handle.result(timeout="60s") == 3
        await wire.call("FUNCTION", "FLUSH")
        many = await noop.enqueue_many([4, 5])
        assert [await one.handle.result(timeout="60s") for one in many] == [4, 5]
        for look in (app.queues["q"].overview, lone.handle.view):
            await wire.call("FUNCTION", "FLUSH")
            assert await look()


async def _noop(number: int) -> int:
    return number
