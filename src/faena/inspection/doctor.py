"""Checks a broker and tells how to fix problems, in terms of its own configuration.

Every finding names what was checked and what was found and, for a problem, the exact command or
line that fixes it. What a managed service hides is reported as hidden. Nothing is changed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Literal

from msgspec.structs import replace

from faena.engine.permission import objection
from faena.engine.wire.address import Address
from faena.engine.wire.wire import Wire
from faena.errors import ConfigError, ScriptError, StoreError, StoreRejected
from faena.inspection.broker_info import WRITE, BrokerInfo, parse_fields, read_broker, read_eviction
from faena.values.view import View

Level = Literal["ok", "warn", "fail"]

_HIDDEN = "cannot see"
_OLDEST = (7, 0)
_RECOMMENDED = (7, 2)
_LATENCY_MS = 10.0
_CLOCK_MS = 500.0
_USE_WARN = 0.80
_USE_FAIL = 0.95
_FEW_CLIENTS = 1000


class Finding(View, frozen=True):
    """The result of one check."""

    name: str
    level: Level
    value: str
    advice: str | None = None


async def examine(
    wire: Wire,
    *,
    namespace: str = "faena",
    clock: Callable[[], float] = time.time,
    is_embedded: bool = False,
) -> list[Finding]:
    """Look at every primary; a broker that cannot be reached is a finding too.

    Without an app's `namespace` the probe is written where its user might not be allowed to.
    """
    try:
        findings = [await _check_writes(wire, namespace), _check_functions(wire), _check_tls(wire)]
        if findings[0].level == "ok":
            findings.insert(1, await _check_permissions(wire, namespace))
        nodes = await wire.nodes()
        for node in nodes:
            broker = await read_broker(wire, node, clock=clock)
            found = [check(broker) for check in _CHECKS]
            found += [_check_replicas(broker, wire), await _check_cluster(broker, wire)]
            if len(nodes) > 1:
                found = [replace(each, name=f"{each.name} {node}") for each in found]
            findings += found
    except StoreError as error:
        return [Finding("connection", "fail", str(error), "start the broker or correct the URL")]
    return [_of_embedded(each) for each in findings] if is_embedded else findings


def _of_embedded(finding: Finding) -> Finding:
    """An embedded server has no configuration that anybody could edit."""
    if finding.advice is None or not finding.advice.startswith("run CONFIG SET"):
        return finding
    advice = "nothing to do: an embedded Valkey is for development; elsewhere set FAENA_URL"
    return replace(finding, advice=advice)


async def visit(address: Address, **options: Any) -> list[Finding]:
    """The same over a connection of its own, which is closed afterwards."""
    wire = Wire(address, client_name="faena-doctor")
    try:
        return await examine(wire, **options)
    finally:
        await wire.close()


async def refuse_eviction(wire: Wire, *, allow: bool = False, patience_s: float = 0.0) -> None:
    """Raise ConfigError when the broker may evict jobs; pass if it hides its policy."""
    if allow:
        return
    for node in await wire.nodes(patience_s):
        policy = await read_eviction(wire, node, patience_s)
        if policy not in {None, "noeviction"}:
            raise ConfigError(
                f"maxmemory-policy of {node} must be noeviction or jobs get lost, got {policy}: "
                "run CONFIG SET maxmemory-policy noeviction, or accept the loss "
                "with Faena(allow_eviction=True)",
                field="maxmemory-policy",
                value=policy,
            )


async def _check_writes(wire: Wire, namespace: str) -> Finding:
    try:
        await wire.run(WRITE, [f"{namespace}:{{doctor}}:probe"], (), patience_s=0)
    except (StoreRejected, ScriptError) as error:
        advice = f"permit the user scripts and writes to {namespace}:*, and free memory"
        return Finding("writes", "fail", str(error), advice)
    return Finding("writes", "ok", "accepted")


async def _check_permissions(wire: Wire, namespace: str) -> Finding:
    """Whether the user may run every command that scripts and programs use."""
    problem = await objection(wire, namespace, "doctor", patience_s=0, is_beside_too=True)
    if problem is None:
        return Finding("permissions", "ok", "complete")
    return Finding("permissions", "fail", problem.what, problem.remedy)


def _check_functions(wire: Wire) -> Finding:
    """After a script has run."""
    if not wire.is_plain:
        return Finding("functions", "ok", "used")
    advice = (
        "permit the user FUNCTION and FCALL (+function +fcall): without them a call takes about "
        "40 % more of the server's time"
    )
    return Finding("functions", "warn", "not available: EVALSHA is used", advice)


def _check_tls(wire: Wire) -> Finding:
    if wire.address.tls is not None:
        return Finding("tls", "ok", f"verify={wire.address.tls.verify}")
    if wire.address.is_local:
        return Finding("tls", "ok", "not needed on this machine")
    return Finding("tls", "warn", "off", "use a valkeys:// or rediss:// URL")


def _check_version(broker: BrokerInfo) -> Finding:
    name = "valkey" if "valkey_version" in broker.info else "redis"
    text = broker.info.get(f"{name}_version")
    numbers = re.match(r"(\d+)\.(\d+)", text or "")
    if numbers is None:
        return _hidden("version", "make sure that it is 7.2 or later")
    version = (int(numbers[1]), int(numbers[2]))
    value = f"{name} {text}"
    if version < _OLDEST:
        return Finding("version", "fail", value, "upgrade to Valkey, or to Redis 7.2 or later")
    if version < _RECOMMENDED:
        return Finding("version", "warn", value, "upgrade to 7.2 or later, which has WAITAOF")
    return Finding("version", "ok", value)


def _check_eviction(broker: BrokerInfo) -> Finding:
    if broker.eviction is None:
        return _hidden("eviction", "make sure that maxmemory-policy is noeviction")
    if broker.eviction == "noeviction":
        return Finding("eviction", "ok", broker.eviction)
    return Finding("eviction", "fail", broker.eviction, _set("maxmemory-policy", "noeviction"))


def _check_persistence(broker: BrokerInfo) -> Finding:
    enabled = broker.info.get("aof_enabled")
    if enabled is None:
        return _hidden("persistence", "make sure that appendonly is yes")
    if enabled != "1":
        return Finding("persistence", "fail", "appendonly no", _set("appendonly", "yes"))
    if broker.info.get("aof_last_write_status", "ok") != "ok":
        return Finding("persistence", "fail", "last write failed", "make room on the server's disk")
    fsync = broker.config.get("appendfsync")
    if fsync is None:
        return _hidden("persistence", "make sure that appendfsync is everysec or always")
    if fsync == "no":
        return Finding("persistence", "warn", "appendfsync no", _set("appendfsync", "everysec"))
    return Finding("persistence", "ok", f"appendonly yes, appendfsync {fsync}")


def _check_memory(broker: BrokerInfo) -> Finding:
    limit = broker.number("maxmemory")
    used = broker.number("used_memory")
    if limit is None or used is None:
        return _hidden("memory", "make sure that maxmemory is set and less than 80 % used")
    if limit == 0:
        value = f"{_megabytes(used)} used, no maxmemory"
        return Finding("memory", "warn", value, _set("maxmemory", "2gb"))
    value = f"{used / limit:.0%} of {_megabytes(limit)} used"
    if used < _USE_WARN * limit:
        return Finding("memory", "ok", value)
    level = "warn" if used < _USE_FAIL * limit else "fail"
    return Finding("memory", level, value, _set("maxmemory", str(2 * limit)))


def _check_clients(broker: BrokerInfo) -> Finding:
    limit = broker.number("maxclients")
    now = broker.number("connected_clients")
    if limit is None or now is None:
        return _hidden("clients", "make sure that maxclients is 10000")
    value = f"{now} of {limit}"
    if limit < _FEW_CLIENTS or now >= _USE_WARN * limit:
        return Finding("clients", "warn", value, _set("maxclients", "10000"))
    return Finding("clients", "ok", value)


def _check_timeout(broker: BrokerInfo) -> Finding:
    timeout = broker.config.get("timeout")
    if timeout is None:
        return _hidden("timeout", "make sure that timeout is 0")
    if timeout == "0":
        return Finding("timeout", "ok", "0")
    return Finding("timeout", "warn", f"{timeout} s", _set("timeout", "0"))


def _check_latency(broker: BrokerInfo) -> Finding:
    value = f"{broker.latency_ms:.1f} ms a script"
    if broker.latency_ms < _LATENCY_MS:
        return Finding("latency", "ok", value)
    return Finding("latency", "warn", value, "run workers and broker in the same zone")


def _check_clock(broker: BrokerInfo) -> Finding:
    value = f"{round(broker.clock_ms):+d} ms from this machine's"
    if abs(broker.clock_ms) < _CLOCK_MS:
        return Finding("clock", "ok", value)
    return Finding("clock", "warn", value, "run NTP on both machines: due times are the server's")


def _check_replicas(broker: BrokerInfo, wire: Wire) -> Finding:
    role = broker.info.get("role")
    if role is None:
        return _hidden("replicas", "make sure that the URL leads to the primary")
    if role != "master":
        return Finding("replicas", "fail", "this is a replica", "use the URL of the primary")
    replicas = broker.info.get("connected_slaves", "0")
    if replicas == "0" and wire.address.kind in {"sentinel", "cluster"}:
        return Finding("replicas", "warn", "none", "add a replica: no failover is possible")
    return Finding("replicas", "ok", replicas if replicas != "0" else "none")


async def _check_cluster(broker: BrokerInfo, wire: Wire) -> Finding:
    enabled = broker.info.get("cluster_enabled")
    if enabled is None:
        return _hidden("cluster", "make sure that a cluster is used with a +cluster URL")
    if enabled == "0":
        return Finding("cluster", "ok", "not a cluster")
    if wire.address.kind != "cluster":
        return Finding("cluster", "fail", "this is a cluster", "use a valkey+cluster:// URL")
    try:
        state = parse_fields(await wire.call("CLUSTER", "INFO", node=broker.node))
    except (StoreRejected, ScriptError):
        return _hidden("cluster", "make sure that cluster_state is ok")
    value = f"{state['cluster_state']}, {state['cluster_slots_ok']} of 16384 slots served"
    if state["cluster_state"] == "ok" and state["cluster_slots_ok"] == "16384":
        return Finding("cluster", "ok", value)
    return Finding("cluster", "fail", value, "see CLUSTER NODES for the nodes that are down")


def _hidden(name: str, advice: str) -> Finding:
    return Finding(name, "warn", _HIDDEN, advice)


def _set(setting: str, value: str) -> str:
    return f"run CONFIG SET {setting} {value}, and put '{setting} {value}' into its configuration"


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


_CHECKS: tuple[Callable[[BrokerInfo], Finding], ...] = (
    _check_version,
    _check_eviction,
    _check_persistence,
    _check_memory,
    _check_clients,
    _check_timeout,
    _check_latency,
    _check_clock,
)
