"""A valid call of every script, for a queue that was populated with everything (`populate_all`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from faena.engine.calls.flows import FlowCalls
from faena.engine.script_library import load
from tests._support.desk_rig import new_redrive
from tests._support.populate import populate_arrivals, populate_parts
from tests._support.rig import SECOND, T0, Rig

Argument = str | int | bytes
Args = Sequence[Argument]

NOW = T0 + 40 * SECOND
"""Leases have ended, and delays are over."""

SOON = T0 + 1
ERROR = b'{"name":"Boom","message":"it broke"}'


def pack(value: Any) -> bytes:
    """As the scripts pack: bytes are texts there. Holds for what is packed below."""
    return msgspec.msgpack.encode(value).replace(b"\xc4", b"\xd9")


NOTE = pack(["t", "a", "Boom", "E", "f00", "it broke", SECOND, 3])
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


FEATURE = pack({"critical": True, "upstreams": ["up"], "when_open": "offline", "check": "offline"})
OWNER = {"name": "ana", "role": "owner"}
GATE = {"caller": "gate", "turn": "0123456789ab9"}
REPORTS = [["up", "a", 3, 1, 1, SECOND, ["p:1", 1, "p:2", 0]]]
ASKS = [[["up"], "", 3, "p", 2, [], 1], [["up"], "a", 1, "x", 0, [5], SECOND]]
SETTLED = [["lot", 1, "a", "task", ["up", 7]]]

LEASE = "call0001"
"""What `populate_all` gives every running job instead of its lease."""


def said(script: str, *rest: Argument, at: int = NOW, **named: Argument) -> Args:
    """All arguments of a call, by their names."""
    return [at, *load(script).args.arranged(script, rest, named)]


def exchange(
    *settled: Argument, at: int = NOW, want: int = 5, sweep: str = "", plain: int = 0, kept: int = 0
) -> Args:
    """An exchange that settles `running`, and others, which it does not hold."""
    who = {"caller": "worker", "lease": "call9999", "worker": "worker"}
    tasks = {"task:send": [1, 1, 0, 0, [5, 5, 1], [7, 7, 1], [12, 12, 1]]}
    asked = {"want": want, "sweep": sweep, "samples": pack(tasks), "least_us": 30 * SECOND}
    return said("exchange", *settled, at=at, **who, **asked, plain=plain, kept=kept)


def ending(job: str, kind: str, number: int = 0, told: bytes = b"", note: bytes = b"") -> Args:
    """One that is not completed."""
    return [job, LEASE, kind, number, told, note]


def once(script: str, *rest: Argument, **named: Argument) -> Args:
    """A call of a caller of its own."""
    return said(script, *rest, caller="c1", id_of_call=script, **named)


def enqueue(*jobs: str) -> Args:
    return said("enqueue", *jobs, caller="p", id_of_call="call9999", epoch=9)


def fire(name: str, spec: str, **named: Argument) -> Args:
    return once("fire", epoch=9, name=name, instant=NOW, id="n9", spec=spec, **named)


def flow(verb: str, name: str, *fields: Argument, **named: Argument) -> Args:
    return said("flow", *fields, shard="q", id=name, verb=verb, **named)


def receive(*messages: Argument) -> Args:
    return said("receive", *messages, shard="q", source="q/1")


SHAPES: dict[str, list[Args]] = {
    "thaw": [
        said("thaw", "@e", "@f", verb="in", epoch=1),
        said("thaw", "@e", verb="out", epoch=1),
        said("thaw", "@e", verb="early", epoch=1),
    ],
    "alert": [said("alert", "dead_many", "1", "dead_old", "q/dead", at=NOW + 3600 * SECOND)],
    "await": [said("await", id="leader")],
    "quota": [said("quota", SOON, 3, SOON, 4, epoch=1, per=60_000_000)],
    "cancel": [
        said("cancel", "leader", "running", "follower", "later", "behind", "throttled", by="ops")
    ],
    "change": [
        once("change", id="later", priority=3, by="ops"),
        once("change", id="leader", delay_us=0),
        once("change", id="behind", delay_us=5_000_000, priority=7, by="ops"),
    ],
    "clean": [
        said("clean", state=state, age_us=0, slice=50, by="ops")
        for state in ("ready", "delayed", "blocked", "dead", "completed")
    ],
    "configure": [
        said(
            *("configure", "version", "9", "lease_us", 5_000_000, "dead_bytes", 1000),
            mode="declare",
        ),
        said(
            *("configure", "limits", "5/1000000", "tenant_limits", "", "soft", 5, "hard", 9),
            mode="edit",
            by="ops",
        ),
        said("configure", "limits", "", mode="reset", by="ops"),
    ],
    "freeze_out": [said("freeze_out", "@a", "@c", epoch=2)],
    "dismiss": [
        once("dismiss", "dead", "done", status="resolved", action="manual", reason="why", by="ana")
    ],
    "enqueue": [
        enqueue(*(part for i, spec in enumerate(SPECS) for part in (f"n{i}", spec))),
        enqueue("done", "010\n{}", "n1", "010\n{}", "n1", "010\n{}"),
    ],
    "exchange": [
        exchange(*ending("running", "retry", SECOND, ERROR), sweep="60000000"),
        exchange(*ending("running", "bury", 1, ERROR, NOTE), *ending("slow", "bury", 0, ERROR)),
        exchange(*ending("slow", "limited", SECOND), *ending("first", "release"), at=SOON),
        exchange(*ending("first", "tenant_limited", SECOND), at=SOON),
        exchange(*ending("first", "snooze", SECOND), *ending("slow", "cancel", 0, ERROR), at=SOON),
        exchange(
            *("running", LEASE, "first", LEASE, "slow", LEASE, "1", "x", LEASE, "2"),
            at=SOON,
            plain=2,
            kept=2,
        ),
        exchange(at=SOON, want=100),
    ],
    "freeze_in": [
        said(
            *("freeze_in", "@z", pack([b"", "claims:60000000@z", b"\0" * 24, 500, b""])),
            epoch=2,
            stamp=str(NOW),
        )
    ],
    "transfer_out": [
        said(
            *("transfer_out", "stays", "next", "slow", "dead", "leader"),
            shard="q/1",
            arrived=10**9,
            epoch=0,
        )
    ],
    "fire": [
        fire(
            *("nightly", SPECS[2]),
            missed="a b",
            number=2,
            expected="v",
            version="w",
            record="{}",
            due=NOW,
        ),
        fire("other", "010\n{}", number=0, version="w", record="{}"),
    ],
    "flow": [
        flow(
            *("open", "new", "name", "n", "plan", "d", "v:1", NODE, "s:1", "waiting 0 0"),
            run=1,
            digest="d",
        ),
        flow("put", "written", "v:1", NODE, "j:1", MADE, "s:1", "waiting 0 0", run=1),
        flow("start", "written", run=1, nodes=1, left=1),
        flow("cancel", "live", by="ops"),
        flow("end", "live", node=1, job="live.1", state="dead", words=ERROR),
        flow("rerun", "over"),
    ],
    "group": [
        said("group", "on:complete", MADE, id="g", verb="open"),
        said("group", id="g", verb="seal", total=0),
    ],
    "hold": [
        said("hold", reason="pause", by="ops"),
        said("hold", reason="other", duration=5, by="ops", stays="1"),
        said("hold", reason="pause", duration="release"),
    ],
    "shards": [
        said("shards", verb="begin", epoch=1, change="shards 2", by="ops"),
        said("shards", verb="publish", epoch=1),
        said("shards", "q/@g", verb="finish", epoch=1),
        said("shards", "@a", verb="restore", epoch=7, number=2),
        said("shards", verb="reset", epoch=0),
    ],
    "declare_upstreams": [said("declare_upstreams", "up", pack({"volume": 3}))],
    "panic": [
        said("panic", caller="o", id_of_call="a", upstream="up", verb="begin", by="x", reason="r"),
        said("panic", caller="o", id_of_call="b", upstream="up", verb="end", by="x"),
    ],
    "sweep_breakers": [
        said("sweep_breakers", "up", "up/@a", "none"),
        said("sweep_breakers", "up", cursor="0"),
        said("sweep_breakers", cursor="0", at=NOW + 3600 * SECOND),
    ],
    "admit": [
        said("admit", **GATE, reports=pack(REPORTS), settled=pack(SETTLED), asks=pack(ASKS)),
        said("admit", **GATE, reports=pack([]), settled=pack([]), asks=pack([])),
    ],
    "change_account": [
        said("change_account", name="user:ana", expected=pack(OWNER), account=account)
        for account in ("", pack({**OWNER, "role": "viewer"}))
    ],
    "keep_view": [
        said("keep_view", whose="all", name="mine", most=2, query=query)
        for query in ("state:dead", "")
    ],
    "bulk": [
        said("bulk", verb="begin", id="b2", plan=b"{}", progress=b"{}"),
        said("bulk", verb="take", id="b", owner="ana", lease_us=SECOND),
        *(
            said("bulk", verb=verb, id="b", owner="leo", lease_us=SECOND, progress=b"{}")
            for verb in ("look", "save", "end", "stop", "resume", "list")
        ),
    ],
    "count_try": [said("count_try", name="ana", lasting_ms=60_000)],
    "end_record": [
        said("end_record", id="r1", record=b"1"),
        said("end_record", id="no", record=b"1"),
    ],
    "declare_features": [said("declare_features", "f:tracking", FEATURE)],
    "features": [said("features")],
    "forget_upstream": [
        once("forget_upstream", upstream="up", by="ops", cursor="0"),
    ],
    "forget_feature": [
        once("forget_feature", kind=kind, name=name, by="ops")
        for kind, name in (("feature", "pay"), ("level", "sale"))
    ],
    "set_feature": [
        once("set_feature", name="pay", state="offline", message="no", duration_us=5, by="ops"),
        once("set_feature", name="pay", by="ops"),
    ],
    "switch_level": [
        once("switch_level", name="sale", to="on", message="no", duration_us=5, by="ops"),
        once("switch_level", name="sale", to="off"),
    ],
    "begin_alerts": [
        said("begin_alerts", "q", "z", set="rules", token="next", lease_us=SECOND, longest_us=9)
    ],
    "evaluate_alerts": [
        said(
            *("evaluate_alerts", "q", pack({"dead": 2})),
            set="begun",
            token="turn",
            wait_us=SECOND,
            readings=pack([["depth", "q", 1, "1 job", 5, 9, 4, 8, 0, 0, 0, ["ops"], ["ops"]]]),
        )
    ],
    "silence": [
        once("silence", verb="begin", id="t", rule="depth", duration_us=9, by="ops", reason="r"),
        once("silence", verb="end", id="s", by="ops"),
    ],
    "begin_check": [
        said("begin_check", name=name, owner=owner, lease_us=5)
        for name, owner in (("push", "me"), ("pay", "o"), ("pay", "me"))
    ],
    "end_check": [
        said("end_check", name="pay", owner="o", is_good=good, every_us=5, failures=1)
        for good in ("", "1")
    ],
    "cached_read": [
        said("cached_read", verb="look", token="a", fresh_us=5, lease_us=SECOND),
        said("cached_read", verb="store", token="r", blob=b"1", keep_us=SECOND),
        said("cached_read", verb="fail", token="r", blob=b"1", keep_us=SECOND),
    ],
    "database_event": [said("database_event", event="outbox_late", what="db", why="3 wait")],
    "fallback": [
        said("fallback", event="escalated", what="running", lease="lease", used="q/t other"),
        said("fallback", event="fallback_failed", what="up", is_upstreams="1"),
    ],
    "idem": [
        said("idem", hash="k", verb=verb, owner="job", ttl_ms=60_000, blob=b"1")
        for verb in ("begin", "complete", "fail", "clear")
    ],
    "transfer_in": [said("transfer_in", shard="q/2", number=10**9, jobs=TRAVELLER)],
    "note": [said("note", "a line", "another", id="running", lease=LEASE, progress=b"50")],
    "obliterate": [
        said("obliterate", slice=50, force="1", drop="1"),
        said("obliterate", slice=50, force="1"),
    ],
    "history_done": [said("history_done", "1-1", "99999999999999-0"), said("history_done")],
    "relayed": [
        said("relayed", to="q", last="99999999999999-0"),
        said("relayed", to="q", last="1-1"),
    ],
    "promote": [once("promote", "leader", by="ops")],
    "receive": [
        receive("5-1", pack(["ended", "f", "live", "1", "completed", "live.1", b"1"])),
        receive("5-1", pack(["ended", "g", "g", "complete", "dead", "j", b""])),
        receive(
            *("5-1", pack(["counted", "g", {"completed": 1}])),
            *("5-2", pack(["launch", "live", 1, 1])),
        ),
        receive(
            *("5-1", pack(["pass", "live", 1, 1, 1, "good"])),
            *("6-0", pack(["call_off", "live", 1, 1])),
        ),
    ],
    "redrive": [
        said("redrive", "new1", "new2", caller="driver", id_of_call="call9999", id="r", priority=5)
    ],
    "redrives": [
        said("redrives", verb="begin", id="r2", record=pack(new_redrive(per_us=SECOND, max=5))),
        *(
            said("redrives", verb=verb, id="r")
            for verb in ("look", "go", "stop", "fail", "resume", "rewind")
        ),
        said("redrives", verb="list"),
    ],
    "remove": [once("remove", "leader", "dead", "done", "later", "behind", "running", by="ops")],
    "renew": [said("renew", "running", LEASE, "first", LEASE, "gone", "x", least_us=30 * SECOND)],
    "rerun": [once("rerun", "dead", "done", "cancelled", by="ops")],
    "arrive": [said("arrive")],
    "retry_as_new": [
        once("retry_as_new", "dead", "dead2", action="retry", reason="why", by="ana", priority=5)
    ],
    "schedule": [
        said(
            "schedule",
            name="nightly",
            expected="v",
            version="w",
            record="{}",
            due=NOW,
            by="ops",
        ),
        said("schedule", name="nightly", expected="v", version="w"),
    ],
    "seal": [said("seal", epoch=2)],
    "spend": [
        said("spend", "tokens", 5, id="running", lease=LEASE),
        said("spend", id="running", lease=LEASE),
    ],
    "tenant": [
        said(
            *("tenant", "weight", 3, "limits", "5/1000000", "held_for", 9),
            lane="@a",
            epoch=9,
            by="ops",
            duration_us=60_000_000,
        )
    ],
    "retire": [said("retire", epoch=1)],
}


async def populate_all(rig: Rig) -> None:
    """Something of everything; every lease is LEASE, and the schedule's version is `v`."""
    await populate_parts(rig)
    await rig.add("stays", lane="@e")
    fields = "v:1", NODE, "s:1", "waiting 0 0"
    await FlowCalls(rig.engine).flow("q", "written", "put", *fields, run=1)
    await rig.engine.release(rig.queue, "pause")
    command = rig.engine.command
    for job in await command("HKEYS", "q", "leases"):
        record = await command("HGET", "q", "leases", job)
        await command("HSET", "q", "leases", job, LEASE.encode() + record[record.index(b" ") :])
    await command("HSET", "q", "schedules", "nightly", "v\n{}")
    await populate_arrivals(rig)
