"""A queue that owns something of everything."""

from __future__ import annotations

import msgspec

from faena.engine.calls.deadletter import DeskCalls
from faena.engine.calls.flows import FlowCalls
from faena.engine.calls.lock import Lock
from faena.engine.calls.scheduling import Change, Firing, fire, write
from faena.engine.calls.transfer import TransferCalls
from faena.limits import Limit
from faena.outcomes import Buried, Completed, DeathNote, Limited, Retried
from faena.resilience.money import Budget, Price
from faena.resilience.upstream_options import UpstreamOptions
from tests._support.desk_rig import new_redrive
from tests._support.rig import BOOM, SECOND, Rig

NO_JOBS = b"\x90"
"""A batch without any, packed."""


async def populate(rig: Rig) -> None:
    """Jobs `done`, `dead`, `cancelled`, `throttled`, `leader` with its `follower`; held."""
    await rig.declare(limits=[Limit("100/min"), Limit("100/min", cost="tokens")])
    await rig.edit(**{"history:room": 1_000_000, "history:payloads": 1})
    await rig.run("done", Completed(b"1"))
    await rig.run("dead", Buried(BOOM, note=DeathNote("t", "", "Boom", "", "f", "", SECOND, 2)))
    await rig.add("cancelled")
    await rig.engine.cancel(rig.queue, ["cancelled"])
    await rig.run("leader", Retried(SECOND, BOOM), unique="u", mode="last")
    await rig.add("follower", unique="u", mode="last")
    await rig.add("throttled", unique="t", mode="throttle", ttl=60 * SECOND)
    await rig.engine.await_job(rig.queue, "follower")
    await rig.engine.idem(rig.queue, hash="k", verb="begin", owner="job", ttl_ms=60_000, blob=b"")
    await rig.turn(is_sweep=True, about="17 0.1.0 faena_0 box")
    await rig.engine.hold(rig.queue, "pause", None, "ops")
    await rig.engine.command("HSET", rig.queue, "stats_hour:472222", "enqueued", "1")
    await rig.engine.command("EXPIRE", rig.queue, "stats_hour:472222", 600)
    desk = DeskCalls(rig.engine)
    await desk.alert(rig.queue, {"dead_many": "1"})
    await desk.redrives(rig.queue, "begin", "r", new_redrive())


async def run_one(rig: Rig) -> str:
    """Let a job `running` be claimed though the queue is held; returns its lease."""
    await rig.engine.release(rig.queue, "pause")
    await rig.add("running", priority=1)
    lease = await rig.claim()
    await rig.engine.hold(rig.queue, "pause", None, "ops")
    return lease


async def populate_parts(rig: Rig) -> None:
    """Something of every part of a queue but the stream of arrivals."""
    await populate(rig)
    await run_one(rig)
    await populate_lanes(rig)
    await populate_shards(rig)
    await populate_flows(rig)
    await populate_schedules(rig)
    await populate_upstreams(rig)
    await populate_cached(rig)
    await populate_features(rig)
    await populate_alerts(rig)
    await populate_access(rig)


async def populate_access(rig: Rig) -> None:
    """Two owners, a session, a link, a failed try, a change that is over and one under way."""
    ask, command, queue = rig.engine.ask, rig.engine.command, rig.queue
    for name in ("user:ana", "user:leo"):
        packed = msgspec.msgpack.encode({"name": name[5:], "role": "owner"})
        await ask("change_account", queue, name=name, account=packed)
    await ask("count_try", queue, name="ana", lasting_ms=60_000)
    for name in ("session:1", "link:1"):
        await command("SET", queue, name, b"1", "PX", 60_000)
    for ident in ("r0", "r1"):
        await command("HSET", queue, "trail_open", ident, b"1")
    await ask("end_record", queue, id="r0", record=b"1")
    await ask("keep_view", queue, whose="all", name="mine", most=2, query="state:dead")
    await command("SET", queue, "place:1", b"1", "PX", 60_000)
    await ask("bulk", queue, verb="begin", id="b", plan=b"{}", progress=b"{}")
    await ask("bulk", queue, verb="take", id="b", owner="leo", lease_us=60_000_000)


async def populate_lanes(rig: Rig) -> None:
    """Lanes: `@a`'s head runs and its limit is spent, `@b` was served and is empty, `@c` waits,
    `@d` was refused by a provider, and a job of `@k` waits for its key's limit."""
    await rig.engine.release(rig.queue, "pause")
    await rig.declare(tenant_limits=[Limit("1/min")], key_limits=[Limit("1/h")], learning=True)
    await rig.engine.tenant(rig.queue, "@a", {"weight": "2"}, by="ops")
    for job in ("first", "behind"):
        await rig.add(job, lane="@a", chain="k/1/a/x")
    await rig.add("other", "another", lane="@a")
    await rig.add("lone", lane="@b")
    await rig.add("refused", lane="@d")
    claimed = (await rig.turn(10)).claimed
    lease = claimed[0].lease
    await rig.engine.tenant(rig.queue, "@k", {"limits": "9/60000000"}, by="ops")
    await rig.add("keyed", "aside", lane="@k", key="k/1/k/x")
    await rig.turn(10)
    await rig.turn(0, ("refused", lease, Limited(SECOND, scope="tenant")))
    await rig.add("later", lane="@c")
    await rig.engine.hold(rig.queue, "pause", None, "ops")


async def populate_shards(rig: Rig) -> None:
    """`@g` has left its shard, and a change goes on: of `@e` `slow` runs and `sent` is sent."""
    moving = TransferCalls(rig.engine)
    await rig.engine.release(rig.queue, "pause")
    await moving.decide(rig.queue, "begin", 0, change="shared @g", by="ops")
    await moving.decide(rig.queue, "publish", 0)
    await moving.decide(rig.queue, "finish", 1, f"{rig.queue}/@g")
    await moving.decide(rig.queue, "begin", 1, change="shards 2", by="ops")
    for name in ("relocator", "redriver:redrive"):
        lock = Lock(rig.engine, rig.queue, name, owner="somebody", lease_s=10, every_s=1)
        assert await lock.take()
    await rig.add("slow", lane="@e")
    await rig.turn(10)
    await rig.add("sent", lane="@e")
    await rig.add("next", lane="@f")
    await moving.freeze_out(rig.queue, 1, ["@e"])
    batch = await moving.take_out(rig.queue, f"{rig.queue}/1", 0, ["slow", "sent"])
    await moving.take_in(rig.queue, f"{rig.queue}/2", batch._replace(jobs=NO_JOBS))
    await rig.engine.hold(rig.queue, "pause", None, "ops")


async def populate_flows(rig: Rig) -> None:
    """A flow and a group that are done, those that are not, and letters."""
    mail = FlowCalls(rig.engine)
    await rig.engine.release(rig.queue, "pause")
    for name in ("over", "live"):
        node = msgspec.msgpack.encode([rig.queue, f"{name}.1", "only", "noop"])
        await mail.flow(
            rig.queue, name, "put", "v:1", node, "j:1", b"\x90", "s:1", "waiting 0 0", run=1
        )
        await mail.flow(rig.queue, name, "start", run=1, nodes=1, left=1)
    await mail.open_group(rig.queue, "g", {})
    await mail.open_group(rig.queue, "over", {})
    await mail.seal_group(rig.queue, "over", 0)
    await rig.add("over.1", lane="@flows", tells=f"f:{rig.queue}:over:1")
    lease = rig.next_call()
    await rig.turn(10, call=lease)
    await rig.add("waiting", lane="@f")
    await rig.turn(0, ("over.1", lease, Completed(b"1")))
    await mail.receive(rig.queue, rig.queue, await mail.messages(rig.queue, rig.queue))
    await rig.engine.hold(rig.queue, "pause", None, "ops")


async def populate_schedules(rig: Rig) -> None:
    """A schedule, and one of another shard that has been fired here."""
    due = rig.clock.now + SECOND
    assert await write(rig.engine, rig.queue, "nightly", Change.of("", b"{}", due))
    wanted = Firing("hourly", rig.clock.now, "hourly@1", b"010\n{}")
    await fire(rig.engine, rig.queue, wanted, None, epoch=9)


async def populate_other_states(rig: Rig) -> None:
    """`done`, `leader`, which runs, and `follower`, which is blocked by it."""
    await rig.run("done", Completed())
    await rig.add("leader", unique="u", mode="last")
    await rig.claim()
    await rig.add("follower", unique="u", mode="last")


async def populate_upstreams(rig: Rig) -> None:
    """An upstream with a limit, whose breaker is open, and one that was forgotten. They live in a
    shard of their own, but their scripts work in any."""
    prices, budgets = [Price("call", "1 USD")], [Budget("9 USD", thresholds=[50])]
    options = UpstreamOptions(limits=["9/s"], prices=prices, budgets=budgets)
    settings = msgspec.msgpack.encode(options.settings())
    await rig.engine.ask("declare_upstreams", rig.queue, "up", settings)
    await rig.engine.ask("declare_upstreams", rig.queue, "old", settings)
    forgotten = {"caller": "z", "id_of_call": "z", "upstream": "old", "by": "ops", "cursor": "0"}
    await rig.engine.ask("forget_upstream", rig.queue, **forgotten)
    bad, asks = [["up", "", 20, 20, 0, 0, []]], [[["up"], "a", 3, "lot", 0, [10**6], SECOND]]
    for turn, (reports, wanted) in enumerate([([], asks), (bad, [])], 1):
        settled = [["lot", 1, "a", "task", ["up", 5 * 10**6]]] if turn == 2 else []
        named = {
            "reports": msgspec.msgpack.encode(reports),
            "settled": msgspec.msgpack.encode(settled),
            "asks": msgspec.msgpack.encode(wanted),
        }
        await rig.engine.ask("admit", rig.queue, caller="gate", turn=f"0123456789ab{turn}", **named)


async def populate_features(rig: Rig) -> None:
    """Features: `pay` is offline by hand, its check is being run; `push` hangs on an upstream. The
    level `sale` is on."""
    pay = {"critical": True, "upstreams": [], "when_open": "offline", "check": "degraded"}
    push = {"upstreams": ["up"], "when_open": "degraded", "fallback": "email", "message": "by mail"}
    declared = {"f:pay": pay, "f:push": push, "l:sale": {"pay": "degraded"}}
    flat = [part for name, one in declared.items() for part in (name, msgspec.msgpack.encode(one))]
    ask = rig.engine.ask
    await ask("declare_features", rig.queue, *flat)
    named = {"caller": "x", "id_of_call": "x", "name": "pay", "by": "ops"}
    await ask("set_feature", rig.queue, **named, state="offline", duration_us=SECOND)
    named = {"caller": "y", "id_of_call": "y", "name": "sale", "to": "on"}
    await ask("switch_level", rig.queue, **named, duration_us=60 * SECOND)
    await ask("begin_check", rig.queue, name="pay", owner="o", lease_us=60 * SECOND)


async def populate_alerts(rig: Rig) -> None:
    """One that fires, whose notice is no job yet, one that is pending, and a silence of others."""
    fires = ["depth", "q", 9, "9 jobs", 5, 20, 4, 16, 0, SECOND, 60 * SECOND, ["ops"], ["ops"]]
    pends = ["wait", "q", 9, "9 s", 5, -1, 4, -1, 60 * SECOND, 0, 0, ["ops"], []]
    readings, totals = msgspec.msgpack.encode([fires, pends]), msgspec.msgpack.encode({"dead": 1})
    ask = rig.engine.ask
    what = {"subject": "other", "by": "ops", "reason": "r", "duration_us": 60 * SECOND}
    named = {"caller": "w", "id_of_call": "w", "verb": "begin", "id": "s"}
    await ask("silence", rig.queue, **named, **what)
    turn = {"set": "rules", "token": "turn"}
    times = {"lease_us": 10 * SECOND, "longest_us": 10 * SECOND}
    await ask("begin_alerts", rig.queue, "q", **turn, **times)
    named = {**turn, "wait_us": SECOND, "readings": readings}
    await ask("evaluate_alerts", rig.queue, "q", totals, **named)
    await ask("begin_alerts", rig.queue, set="begun", token="turn", **times)


async def populate_cached(rig: Rig) -> None:
    """A value that is read anew by `r`, for a minute. Such values live in shards of their own."""
    named = {"token": "r", "fresh_us": 0, "lease_us": 60 * SECOND}
    await rig.engine.ask("cached_read", rig.queue, verb="look", **named)
    await rig.engine.ask("cached_read", rig.queue, verb="store", token="r", blob="1", keep_us=10**9)
    await rig.engine.ask("cached_read", rig.queue, verb="look", **named)


async def populate_arrivals(rig: Rig) -> None:
    """Jobs that were left in the stream: ordinary ones, one of a lane, one of a chain."""
    for number, line in enumerate(["010", "010 lane=@a", "005 lane=@n chain=k/1/n/x", "010"]):
        fields = f"left{number}", f"{line}\n{{}}", "somebody", f"0123456789ab{number + 1:x}"
        await rig.engine.command("XADD", rig.queue, "arrivals", "*", *fields)
