"""The wire on a real cluster of three: slots, moves, and waits on several nodes at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from faena.engine.wire.address import Address
from faena.engine.wire.topology import slot_of
from faena.engine.wire.wire import Wire
from faena.errors import StoreRejected, StoreUnavailable
from tests._support.eventually import eventually
from tests._support.lua import COUNT, READ
from tests._support.server_group import ClusterGroup
from tests._support.valkey import Server


@pytest.fixture(scope="module")
def shared() -> Iterator[ClusterGroup]:
    with ClusterGroup() as server_group:
        asyncio.run(eventually(server_group.is_ready))
        yield server_group


@pytest.fixture
async def server_group(shared: ClusterGroup) -> ClusterGroup:
    """Whoever stops a node or moves a slot puts it back."""
    await eventually(shared.is_ready)
    for server in shared.servers:
        shared.command(server, "FLUSHALL")
    return shared


@pytest.fixture
async def wire(server_group: ClusterGroup) -> AsyncIterator[Wire]:
    wire = Wire(Address.parse(server_group.url), call_timeout_s=2)
    yield wire
    await wire.close()


def _tag_of_each_node(server_group: ClusterGroup) -> dict[int, str]:
    """For each node's port, a hash tag that it owns."""
    tags: dict[int, str] = {}
    for number in range(100):
        tags.setdefault(server_group.owner(slot_of(f"{{q{number}}}")).port, f"{{q{number}}}")
        if len(tags) == 3:
            break
    return tags


async def test_scripts_waits_and_pops_go_to_the_owner_of_the_slot(
    server_group: ClusterGroup, wire: Wire
) -> None:
    tags = _tag_of_each_node(server_group)
    for tag in tags.values():
        assert await wire.run(COUNT, [f"{tag}:k"], [], patience_s=60) == 1
        answer = await wire.run_and_wait(
            COUNT, [f"{tag}:k"], [], [("WAITAOF", 1, 0, 60_000)], patience_s=60
        )
        assert answer == (2, [[1, 0]])
    for server in server_group.servers:
        assert server_group.command(server, "GET", f"{tags[server.port]}:k") == "2"
    assert {node.port for node in await wire.nodes()} == set(tags)


async def test_a_pop_waits_on_every_node_and_forgets_nothing_between_calls(
    server_group: ClusterGroup, wire: Wire
) -> None:
    keys = [f"{tag}:w" for tag in _tag_of_each_node(server_group).values()]
    waiting = asyncio.create_task(wire.block_pop(keys, 60))
    for server in server_group.servers:
        await eventually(lambda server=server: _blocked(server_group, server) == 1)
    await wire.call("ZADD", keys[0], 1, "m", key=keys[0])
    assert await waiting == keys[0]
    # The other two are still blocked on the server, and pop for the call to come.
    await wire.call("ZADD", keys[2], 1, "m", key=keys[2])
    await eventually(lambda: _is_gone(wire, keys[2]))
    assert await wire.block_pop(keys, 60) == keys[2]
    assert await wire.block_pop(keys, 0.05) is None
    waiting = asyncio.create_task(wire.block_pop(keys, 60))
    for server in server_group.servers:
        await eventually(lambda server=server: _blocked(server_group, server) == 1)
    await wire.rebuild()
    with pytest.raises(StoreUnavailable):
        await waiting
    for server in server_group.servers:
        await eventually(lambda server=server: _blocked(server_group, server) == 0)


async def test_a_slot_that_moves_is_followed_through_every_stage(
    server_group: ClusterGroup, wire: Wire
) -> None:
    source, target = server_group.servers[:2]
    tag = _tag_of_each_node(server_group)[source.port]
    slot = slot_of(tag)
    assert await wire.run(COUNT, [f"{tag}:old"], [], patience_s=60) == 1
    blocked = asyncio.create_task(wire.block_pop([f"{tag}:w"], 60))
    await eventually(lambda: _blocked(server_group, source) == 1)

    server_group.command(
        target, "CLUSTER", "SETSLOT", slot, "IMPORTING", server_group.node_id(source)
    )
    server_group.command(
        source, "CLUSTER", "SETSLOT", slot, "MIGRATING", server_group.node_id(target)
    )
    assert await wire.run(COUNT, [f"{tag}:old"], [], patience_s=60) == 2  # still at the source
    assert await wire.call("INCR", f"{tag}:new", key=f"{tag}:new") == 1  # ASK: at the target
    assert await wire.call("INCR", f"{tag}:new", key=f"{tag}:new") == 2
    # a script may need keys of both: it waits for all of them to be at one
    script = asyncio.create_task(wire.run(COUNT, [f"{tag}:new"], [], patience_s=60))

    server_group.command(source, "MIGRATE", "127.0.0.1", target.port, f"{tag}:old", 0, 5000)
    server_group.hand_over(slot, target)
    assert await wire.run(COUNT, [f"{tag}:old"], [], patience_s=60) == 3  # MOVED
    assert await script == 3
    await wire.call("ZADD", f"{tag}:w", 1, "m", key=f"{tag}:w")
    assert await blocked == f"{tag}:w"
    server_group.command(target, "FLUSHALL")
    server_group.hand_over(slot, source)


async def test_a_dead_node_fails_its_own_slots_and_comes_back(
    server_group: ClusterGroup, wire: Wire
) -> None:
    for server in server_group.servers:
        server_group.command(server, "CONFIG", "SET", "cluster-require-full-coverage", "no")
    tags = _tag_of_each_node(server_group)
    lost = server_group.servers[0]
    for tag in tags.values():
        await wire.run(COUNT, [f"{tag}:k"], [], patience_s=60)
    lost.kill()
    with pytest.raises(StoreUnavailable):
        await wire.run(READ, [f"{tags[lost.port]}:k"], [], patience_s=0.3)
    for server in server_group.servers[1:]:
        assert await wire.run(READ, [f"{tags[server.port]}:k"], [], patience_s=60) == b"1"
    waiting = asyncio.create_task(wire.run(READ, [f"{tags[lost.port]}:k"], [], patience_s=60))
    await asyncio.to_thread(lost.start)
    assert await waiting == b"1"
    await eventually(server_group.is_ready)


async def test_any_node_may_be_the_seed_and_dead_seeds_are_passed_over(
    server_group: ClusterGroup,
) -> None:
    ports = [1, *(server.port for server in server_group.servers)]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    wire = Wire(Address.parse(f"redis+cluster://{hosts}"))
    assert await wire.run(COUNT, ["{q}:k"], [], patience_s=60) == 1
    await wire.close()


async def test_a_message_is_heard_from_whichever_node_it_was_sent(
    server_group: ClusterGroup, wire: Wire
) -> None:
    heard: set[bytes] = set()
    subscription = await wire.listen({"news": heard.add})
    missing = {str(server.port).encode(): server for server in server_group.servers}

    def are_heard() -> bool:
        """Nodes drop a message while they have lost sight of each other: then it is sent again."""
        for message in heard:
            missing.pop(message, None)
        for message, server in missing.items():
            server_group.command(server, "PUBLISH", "news", message.decode())
        return not missing

    await eventually(are_heard)
    await subscription.close()


async def test_a_plain_url_to_a_cluster_node_is_told_what_it_needs(
    server_group: ClusterGroup,
) -> None:
    wire = Wire(Address.parse(server_group.servers[0].url))
    foreign = _tag_of_each_node(server_group)[server_group.servers[1].port]
    with pytest.raises(StoreRejected, match="cluster URL"):
        await wire.run(COUNT, [f"{foreign}:k"], [], patience_s=60)
    await wire.close()


async def test_a_cluster_url_to_a_plain_server_is_told_so() -> None:
    with Server() as server:
        wire = Wire(Address.parse(f"redis+cluster://127.0.0.1:{server.port}"))
        with pytest.raises(StoreRejected, match="cluster support disabled"):
            await wire.run(COUNT, ["k"], [], patience_s=60)
        await wire.close()


def _blocked(server_group: ClusterGroup, server: Server) -> int:
    with server.client() as client:
        return client.info("clients")["blocked_clients"]


async def _is_gone(wire: Wire, key: str) -> bool:
    return await wire.call("EXISTS", key, key=key) == 0
