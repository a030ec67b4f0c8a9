"""A valid call of every script, for a queue that was populated with everything (`populate_all`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from faena.engine.calls.flows import FlowCalls
from tests._support.desk_rig import new_redrive
from tests._support.populate import (
    populate,
    populate_arrivals,
    populate_flows,
    populate_lanes,
    populate_schedules,
    populate_shards,
    run_one,
)
from tests._support.rig import SECOND, T0, Rig

Args = Sequence[str | int | bytes]

NOW = T0 + 40 * SECOND
"""Leases have ended, and delays are over."""

SOON = T0 + 1
ERROR = b'{"name":"Boom","message":"it broke"}'


def pack(value: Any) -> bytes:
    """As the scripts pack: bytes are texts there. Holds for what is packed below."""
    return msgspec.msgpack.encode(value).replace(b"\xc4", b"\xd9")


NOTE = pack(["t", "a", "Boom", "E", "f00", "it broke", SECOND, 3])
BURIED = b"%d %b%b" % (len(NOTE), NOTE, ERROR)
NODE = pack(["q", "n.1", "only", "noop"])
MADE = pack(["q", 10, {"tells": "f:q:live:1"}, "{}", "live.1"])
DESK = pack({"s": "pending", "t": "", "o": "", "e": "E", "c": "", "f": "f"})
TRAVELLER = pack(
    [
        ["t1", "010 lane=@c\n{}", "ready", "5", pack({"a": 1}), ["errors", "1"], "", "", [], False],
        ["t2", "010\n{}", "dead", "6", "", [], "", "", [], False, [DESK, "", str(NOW)]],
        ["t3", "010 chain=k\n{}", "blocked", "6", "", [], "", "tail", [], NOW + 5],
        ["t4", "010\n{}", "completed", "6", "", [], "1", "", ["unique:live:z", "t4", 0]],
    ]
)

FACTS = (
    "lane=@a chain=k/1/a/x",
    "lane=@c delay=5000000",
    "unique=u mode=last tells=g:q:g:",
    "unique=u mode=last delay=9",
    "unique=w mode=waiting",
    "unique=l mode=live digest=d",
    "unique=t mode=throttle ttl=60000000",
    "unique=b mode=debounce ttl=1000000 delay=5",
    f"by={NOW + 5} tells=f:q:live:1 digest=d",
)
SPECS = [f"{10 + i:03d} {facts}\n{{}}" for i, facts in enumerate(FACTS)]


def exchange(now: int, settled: Sequence[Any] = (), want: int = 5, sweep: str = "") -> Args:
    """An exchange that settles `running`, and others, which it does not hold."""
    samples = pack({"ran:5": 3})
    head: list[Any] = [now, "worker", "call9999", "worker", want, sweep, samples, 30 * SECOND]
    return [*head, *(settled or (0, 0))]


def settled(*items: Any) -> list[Any]:
    return [0, 0, *items]


LEASE = "call0001"
"""What `populate_all` gives every running job instead of its lease."""

SHAPES: dict[str, list[Args]] = {
    "thaw": [[NOW, "in", 1, "@e", "@f"], [NOW, "out", 1, "@e"], [NOW, "early", 1, "@e"]],
    "alert": [[NOW + 3600 * SECOND, "dead_many", "1", "dead_old", "q/dead"]],
    "await": [["leader"]],
    "quota": [[NOW, 1, 60_000_000, SOON, 3, SOON, 4]],
    "cancel": [[NOW, "ops", "leader", "running", "follower", "later", "behind", "throttled"]],
    "change": [
        [NOW, "c1", "change", "later", "", 3, "ops"],
        [NOW, "c1", "change", "leader", 0, "", ""],
        [NOW, "c1", "change", "behind", 5_000_000, 7, "ops"],
    ],
    "clean": [
        [NOW, state, 0, 50, "ops"] for state in ("ready", "delayed", "blocked", "dead", "completed")
    ],
    "configure": [
        [NOW, "declare", "version", "9", "lease_us", 5_000_000, "dead_bytes", 1000],
        [NOW, "edit ops", "limits", "5/1000000", "tenant_limits", "", "soft", 5, "hard", 9],
        [NOW, "reset ops", "limits", ""],
    ],
    "freeze_out": [[NOW, 2, "@a", "@c"]],
    "dismiss": [[NOW, "c2", "dismiss", "resolved", "manual", "why", "ana", "dead", "done"]],
    "enqueue": [
        [
            NOW,
            "p",
            "call9999",
            9,
            *(part for i, spec in enumerate(SPECS) for part in (f"n{i}", spec)),
        ],
        [NOW, "p", "call9999", 9, "done", "010\n{}", "n1", "010\n{}", "n1", "010\n{}"],
    ],
    "exchange": [
        exchange(NOW, settled("running", LEASE, "retry", SECOND, ERROR), sweep="60000000"),
        exchange(
            NOW, settled("running", LEASE, "bury", 1, BURIED, "slow", LEASE, "bury", 0, ERROR)
        ),
        exchange(
            SOON, settled("slow", LEASE, "limited", SECOND, "", "first", LEASE, "release", 0, "")
        ),
        exchange(SOON, settled("first", LEASE, "tenant_limited", SECOND, "")),
        exchange(
            SOON, settled("first", LEASE, "snooze", SECOND, "", "slow", LEASE, "cancel", 0, ERROR)
        ),
        exchange(
            SOON, [2, "running", LEASE, "first", LEASE, 2, "slow", LEASE, "1", "x", LEASE, "2"]
        ),
        exchange(SOON, want=100),
    ],
    "freeze_in": [[NOW, 2, str(NOW), "@z", pack([b"", "claims:60000000@z", b"\0" * 24, 500, b""])]],
    "transfer_out": [[NOW, "q/1", 10**9, 0, "stays", "next", "slow", "dead", "leader"]],
    "fire": [
        [NOW, "c3", "fire", 9, "nightly", NOW, "n9", SPECS[2], "a b", 2, "v", "w", "{}", NOW],
        [NOW, "c3", "fire", 9, "other", NOW, "n9", "010\n{}", "", 0, "", "w", "{}", ""],
    ],
    "flow": [
        [NOW, "q", "new", "open", 1, "name", "n", "plan", "d", "v:1", NODE, "s:1", "waiting 0 0"],
        [NOW, "q", "written", "put", 1, "v:1", NODE, "j:1", MADE, "s:1", "waiting 0 0"],
        [NOW, "q", "written", "start", 1, 1, 1],
        [NOW, "q", "live", "cancel", "ops"],
        [NOW, "q", "live", "end", 1, "live.1", "dead", ERROR],
        [NOW, "q", "over", "rerun", ""],
    ],
    "group": [[NOW, "g", "open", "on:complete", MADE], [NOW, "g", "seal", 0]],
    "hold": [
        [NOW, "pause", "", "ops", ""],
        [NOW, "other", 5, "ops", "1"],
        [NOW, "pause", "release", ""],
    ],
    "shards": [
        [NOW, "begin", 1, "shards 2", "ops"],
        [NOW, "publish", 1],
        [NOW, "finish", 1, "q/@g"],
        [NOW, "restore", 7, 2, "@a"],
    ],
    "idem": [["k", verb, "job", 60_000, b"1"] for verb in ("begin", "complete", "fail", "clear")],
    "transfer_in": [[NOW, "q/2", 10**9, TRAVELLER]],
    "note": [["running", LEASE, b"50", "a line", "another"]],
    "obliterate": [[NOW, 50, "1", "1"], [NOW, 50, "1", ""]],
    "relayed": [[NOW, "q", "99999999999999-0"], [NOW, "q", "1-1"]],
    "promote": [[NOW, "c4", "promote", "ops", "leader"]],
    "receive": [
        [NOW, "q", "q/1", "5-1", pack(["ended", "f", "live", "1", "completed", "live.1", b"1"])],
        [NOW, "q", "q/1", "5-1", pack(["ended", "g", "g", "complete", "dead", "j", b""])],
        [
            NOW,
            "q",
            "q/1",
            "5-1",
            pack(["counted", "g", {"completed": 1}]),
            "5-2",
            pack(["launch", "live", 1, 1]),
        ],
        [
            NOW,
            "q",
            "q/1",
            "5-1",
            pack(["pass", "live", 1, 1, 1, "good"]),
            "6-0",
            pack(["call_off", "live", 1, 1]),
        ],
    ],
    "redrive": [[NOW, "driver", "call9999", "", "r", 5, "new1", "new2"]],
    "redrives": [
        [NOW, "begin", "r2", pack(new_redrive(per_us=SECOND, max=5))],
        *([NOW, verb, "r"] for verb in ("look", "go", "stop", "fail", "resume", "rewind")),
        [NOW, "list"],
    ],
    "remove": [
        [NOW, "c7", "remove", "ops", "leader", "dead", "done", "later", "behind", "running"]
    ],
    "renew": [[NOW, 30 * SECOND, "running", LEASE, "first", LEASE, "gone", "x"]],
    "rerun": [[NOW, "c5", "rerun", "ops", "dead", "done", "cancelled"]],
    "arrive": [[]],
    "retry_as_new": [[NOW, "c6", "retry_as_new", "", "retry", "why", "ana", 5, "dead", "dead2"]],
    "schedule": [
        [NOW, "nightly", "v", "w", "{}", NOW, "ops"],
        [NOW, "nightly", "v", "w", "", "", ""],
    ],
    "seal": [[NOW, 2]],
    "spend": [[NOW, "running", LEASE, "tokens", 5], [NOW, "running", LEASE]],
    "tenant": [
        [NOW, "@a", 9, "ops", 60_000_000, "weight", 3, "limits", "5/1000000", "held_for", 9]
    ],
    "retire": [[NOW, 1]],
}


async def populate_all(rig: Rig) -> None:
    """Something of everything; every lease is LEASE, and the schedule's version is `v`."""
    await populate(rig)
    await run_one(rig)
    await populate_flows(rig)
    await run_one(rig)
    await populate_lanes(rig)
    await populate_schedules(rig)
    await populate_shards(rig)
    await rig.add("stays", lane="@e")
    await FlowCalls(rig.engine).flow("q", "written", "put", 1, "v:1", NODE, "s:1", "waiting 0 0")
    await rig.engine.release(rig.queue, "pause")
    command = rig.engine.command
    for job in await command("HKEYS", "q", "leases"):
        record = await command("HGET", "q", "leases", job)
        await command("HSET", "q", "leases", job, LEASE.encode() + record[record.index(b" ") :])
    await command("HSET", "q", "schedules", "nightly", "v\n{}")
    await populate_arrivals(rig)
