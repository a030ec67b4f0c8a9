"""What the doctor finds on real servers, healthy, wrongly set up, closed-mouthed and absent."""

from __future__ import annotations

import resource
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from faena.engine.wire.address import Address
from faena.engine.wire.wire import Wire
from faena.errors import ConfigError
from faena.inspection.doctor import Finding, examine, refuse_eviction
from tests._support.eventually import eventually
from tests._support.server_group import ClusterGroup
from tests._support.valkey import Server, free_port

HEALTHY = ("maxmemory 100mb",)
NAMES = (
    "writes permissions functions tls version eviction persistence memory clients timeout latency "
    "clock replicas cluster"
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with Server(*HEALTHY) as server:
        yield server


@pytest.fixture
async def wire(shared: Server) -> AsyncIterator[Wire]:
    wire = Wire(Address.parse(shared.url))
    yield wire
    await wire.close()


async def _find(wire: Wire, name: str) -> Finding:
    return next(finding for finding in await examine(wire) if finding.name == name)


async def test_a_healthy_server_is_all_well(wire: Wire) -> None:
    findings = await examine(wire)
    assert [finding.name for finding in findings] == NAMES.split()
    bad = [finding for finding in findings if finding.level != "ok"]
    # How many clients a machine allows is not the server's to choose.
    assert [finding.name for finding in bad if finding.name not in {"clients", "latency"}] == []


@pytest.mark.parametrize(
    ("setting", "value", "name", "level"),
    [
        ("maxmemory-policy", "allkeys-lru", "eviction", "fail"),
        ("maxmemory-policy", "volatile-ttl", "eviction", "fail"),
        ("appendfsync", "no", "persistence", "warn"),
        ("appendonly", "no", "persistence", "fail"),
        ("maxmemory", "0", "memory", "warn"),
        ("timeout", "300", "timeout", "warn"),
        ("maxclients", "100", "clients", "warn"),
    ],
)
async def test_each_wrong_setting_is_found_with_the_command_that_mends_it(
    wire: Wire, setting: str, value: str, name: str, level: str
) -> None:
    before = (await wire.call("CONFIG", "GET", setting))[1]
    await wire.call("CONFIG", "SET", setting, value)
    try:
        found = await _find(wire, name)
        assert found.level == level
        assert found.advice is not None
        assert f"run CONFIG SET {setting} " in found.advice
        mend = found.advice.removeprefix("run ").partition(",")[0].split()
        await wire.call(*mend)
        assert (await _find(wire, name)).level == "ok"
    finally:
        await wire.call("CONFIG", "SET", setting, before)


@pytest.mark.parametrize(("share", "level"), [(0.85, "warn"), (0.98, "fail")])
async def test_memory_that_fills_up_is_an_alert(wire: Wire, share: float, level: str) -> None:
    await wire.call("SETRANGE", "ballast", 50_000_000, "x")  # so that trifles make no difference
    info = (await wire.call("INFO", "memory")).decode()
    used = int(info.partition("used_memory:")[2].split()[0])
    await wire.call("CONFIG", "SET", "maxmemory", int(used / share))
    try:
        found = await _find(wire, "memory")
    finally:
        await wire.call("CONFIG", "SET", "maxmemory", "100mb")
        await wire.call("DEL", "ballast")
    assert found.level == level
    assert "% of" in found.value


async def test_a_full_server_fails_the_write_check(wire: Wire) -> None:
    await wire.call("CONFIG", "SET", "maxmemory", 1)
    try:
        found = await _find(wire, "writes")
    finally:
        await wire.call("CONFIG", "SET", "maxmemory", "100mb")
    assert (found.level, "maxmemory" in found.value) == ("fail", True)


async def test_clocks_that_differ_are_told_apart_in_both_directions(wire: Wire) -> None:
    for shift in (-60, 60):
        findings = await examine(wire, clock=lambda shift=shift: time.time() + shift)
        (found,) = (finding for finding in findings if finding.name == "clock")
        assert found.level == "warn"
        assert found.value.startswith(f"{-shift:+}")


async def test_a_clock_that_is_hardly_behind_is_not_less_than_zero(wire: Wire) -> None:
    findings = await examine(wire, clock=lambda: time.time() + 0.0003)
    (found,) = (finding for finding in findings if finding.name == "clock")
    assert not found.value.startswith("-0 ")


async def test_a_server_without_config_still_tells_what_info_shows(
    wire: Wire, shared: Server
) -> None:
    await wire.call(
        "ACL", "SETUSER", "guest", "on", ">sesame", "~*", "+@all", "-config", "-cluster"
    )
    guest = Wire(Address.parse(f"redis://guest:sesame@127.0.0.1:{shared.port}"))
    findings = {finding.name: finding for finding in await examine(guest)}
    await guest.close()
    assert (findings["eviction"].level, findings["eviction"].value) == ("ok", "noeviction")
    for name in ("timeout", "persistence"):
        assert (findings[name].level, findings[name].value) == ("warn", "cannot see")


async def test_a_server_that_tells_nothing_is_not_guessed_about(wire: Wire, shared: Server) -> None:
    await wire.call("ACL", "SETUSER", "mute", "on", ">sesame", "~*", "+@all", "-config", "-info")
    mute = Wire(Address.parse(f"redis://mute:sesame@127.0.0.1:{shared.port}"))
    findings = await examine(mute)
    await refuse_eviction(mute)
    await mute.close()
    hidden = {finding.name for finding in findings if finding.value == "cannot see"}
    seen = {"writes", "permissions", "functions", "tls", "latency", "clock"}
    assert hidden == set(NAMES.split()) - seen
    assert all(finding.advice for finding in findings if finding.name in hidden)


async def test_an_absent_server_is_one_finding() -> None:
    wire = Wire(Address.parse(f"redis://127.0.0.1:{free_port()}"))
    (found,) = await examine(wire)
    await wire.close()
    assert (found.name, found.level) == ("connection", "fail")


async def test_a_url_that_leaves_the_machine_wants_tls(wire: Wire) -> None:
    wire.address = Address.parse("redis://db.test")
    found = await _find(wire, "tls")
    assert (found.level, found.value) == ("warn", "off")
    assert "valkeys://" in (found.advice or "")


async def test_a_replica_is_no_place_for_jobs(shared: Server) -> None:
    with Server(*HEALTHY, f"replicaof 127.0.0.1 {shared.port}", "replica-read-only no") as replica:
        wire = Wire(Address.parse(replica.url))
        found = await _find(wire, "replicas")
        await wire.close()
    assert (found.level, found.value) == ("fail", "this is a replica")


async def test_every_node_of_a_cluster_is_examined() -> None:
    with ClusterGroup() as server_group:
        await eventually(server_group.is_ready)
        wire = Wire(Address.parse(server_group.url))
        findings = await examine(wire)
        await wire.close()
    found = {finding.name: finding for finding in findings}
    for server in server_group.servers:
        assert found[f"cluster 127.0.0.1:{server.port}"].level == "ok"
        assert found[f"replicas 127.0.0.1:{server.port}"].level == "warn"


@pytest.fixture(scope="module")
def lone_node() -> Iterator[Server]:
    """A cluster of one node."""
    rules = ("cluster-enabled yes", "cluster-require-full-coverage no")
    with Server(*HEALTHY, *rules) as server, server.client() as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        yield server


async def _is_up(node: Server) -> bool:
    with node.client() as client:
        return client.cluster("INFO")["cluster_state"] == "ok"


async def test_slots_that_nobody_serves_are_found(lone_node: Server) -> None:
    await eventually(lambda: _is_up(lone_node))
    wire = Wire(Address.parse(f"redis+cluster://127.0.0.1:{lone_node.port}"))
    assert (await _find(wire, "cluster")).level == "ok"
    await wire.call("CLUSTER", "DELSLOTS", 16383)
    found = await _find(wire, "cluster")
    await wire.call("CLUSTER", "ADDSLOTS", 16383)
    await wire.close()
    assert (found.level, found.value) == ("fail", "ok, 16383 of 16384 slots served")


async def test_a_node_of_a_cluster_wants_a_cluster_url(lone_node: Server) -> None:
    await eventually(lambda: _is_up(lone_node))
    wire = Wire(Address.parse(lone_node.url))
    found = await _find(wire, "cluster")
    await wire.close()
    assert (found.level, found.value) == ("fail", "this is a cluster")
    assert "valkey+cluster://" in (found.advice or "")


async def test_a_file_that_cannot_be_written_is_found() -> None:
    with Server(*HEALTHY) as server, server.client() as client:
        wire = Wire(Address.parse(server.url))
        assert (await _find(wire, "persistence")).level == "ok"
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, 1))
        client.set("k", "v")
        await eventually(lambda: client.info("persistence")["aof_last_write_status"] == "err")
        found = await _find(wire, "persistence")
        await wire.close()
    assert (found.level, found.value) == ("fail", "last write failed")
    assert found.advice == "make room on the server's disk"


async def test_eviction_is_refused_at_start_unless_allowed(wire: Wire) -> None:
    await refuse_eviction(wire)
    await wire.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(ConfigError, match="must be noeviction or jobs get lost, got allkeys"):
            await refuse_eviction(wire)
        await refuse_eviction(wire, allow=True)
    finally:
        await wire.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
