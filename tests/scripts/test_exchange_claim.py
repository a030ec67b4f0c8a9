"""exchange.lua: claiming, looking ahead, and the call that is repeated."""

from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest

from faena.engine.scripts import Claim, Turn
from faena.errors import InternalError, ScriptError
from faena.outcomes import Completed, Retried
from tests._support.rig import BOOM, LEASE, SECOND, T0, Rig, score


async def test_the_first_ready_jobs_are_leased_and_no_more_than_wanted(rig: Rig) -> None:
    await rig.add("a", "b", "c")
    await rig.remember()
    exchanged = await rig.turn(2, call="lease1")
    assert exchanged.claimed == [
        Claim("a", "lease1", b"010\n{}", score(T0 + 1), 0, 0, 0),
        Claim("b", "lease1", b"010\n{}", score(T0 + 2), 0, 0, 0),
    ]
    assert (exchanged.now, exchanged.next_at, exchanged.gate) == (T0, T0 + LEASE, "")
    assert (exchanged.more, exchanged.lost) == (True, [])
    assert await rig.changed() == {
        "clock": {"enqueued": 3, "prune_at": T0 + SECOND, "stamp": T0 + 3},
        "leases": {
            "a": ("lease1", T0, "worker", score(T0 + 1)),
            "b": ("lease1", T0, "worker", score(T0 + 2)),
        },
        "ready": [("c", score(T0 + 3))],
        "running": [("a", T0 + LEASE), ("b", T0 + LEASE)],
    }
    assert (await rig.events())[-1] == {"worker": "worker", "claimed": "a b"}
    assert (await rig.counters())["claimed"] == 2


async def test_a_job_with_a_history_comes_with_it(rig: Rig) -> None:
    await rig.run("a", Retried(0, BOOM))
    await rig.engine.change("q", "a", priority=3)
    (claim,) = (await rig.turn(1)).claimed
    assert (claim.attempts, claim.losses, claim.priority) == (1, 0, 3)


async def test_an_empty_queue_gives_nothing_and_nothing_to_wait_for(rig: Rig) -> None:
    await rig.declare()
    await rig.remember()
    exchanged = await rig.turn(5)
    assert (exchanged.claimed, exchanged.next_at, exchanged.more) == ([], 0, False)
    assert await rig.changed() == {"clock": {"prune_at": T0 + SECOND}}
    assert await rig.events() == []


async def test_the_next_instant_is_the_first_delayed_job(rig: Rig) -> None:
    await rig.add("a", delay=3 * SECOND)
    assert (await rig.turn(1)).next_at == T0 + 3 * SECOND


async def test_a_delayed_job_is_ready_at_its_instant_as_if_it_had_come_then(rig: Rig) -> None:
    await rig.add("due", delay=SECOND)
    await rig.add("slow", delay=2 * SECOND)
    rig.clock.go(1)
    await rig.add("fresh")
    await rig.remember()
    await rig.turn()
    changed = await rig.changed()
    assert changed["ready"] == [("due", score(T0 + SECOND)), ("fresh", score(T0 + SECOND + 1))]
    assert changed["delayed"] == [("slow", T0 + 2 * SECOND)]
    assert (await rig.counters())["promoted"] == 1


async def test_what_is_left_over_wakes_another_worker(rig: Rig) -> None:
    await rig.add("a", "b")
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    assert (await rig.turn(1)).more
    assert (await rig.dump())["wake"] == [("work", 0.0)]
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    assert not (await rig.turn(1)).more
    assert "wake" not in await rig.dump()


async def test_a_worker_is_known_from_a_sweep_until_two_leases_later(rig: Rig) -> None:
    await rig.turn(is_sweep=True, worker="old")
    rig.clock.go(2 * LEASE / SECOND)
    await rig.remember()
    await rig.turn(is_sweep=True, worker="new")
    assert (await rig.changed())["workers"] == [("new", T0 + 4 * LEASE)]


async def test_what_a_worker_says_of_itself_is_known_as_long_as_it_is(rig: Rig) -> None:
    async def sweep(worker: str, about: str) -> None:
        turn = Turn(rig.next_call(), 0, is_sweep=True, about=about)
        await rig.engine.exchange("q", worker, worker, turn)

    await sweep("old", "17 0.1.0 faena_0 box")
    rig.clock.go(1)
    await sweep("old", "17 0.1.0 faena_0 box")
    assert (await rig.dump())["about"] == {"old": f"{T0} 17 0.1.0 faena_0 box"}
    await sweep("old", "18 0.1.0 faena_0 box")
    assert (await rig.dump())["about"] == {"old": f"{T0 + SECOND} 18 0.1.0 faena_0 box"}
    rig.clock.go(2 * LEASE / SECOND)
    await sweep("new", "19 0.1.0 faena_0 other box")
    assert (await rig.dump())["about"] == {"new": f"{rig.clock.now} 19 0.1.0 faena_0 other box"}


async def test_a_worker_with_short_leases_is_known_for_half_a_minute(rig: Rig) -> None:
    await rig.declare(lease="1s")
    await rig.turn(is_sweep=True)
    assert (await rig.dump())["workers"] == [("worker", T0 + 30 * SECOND)]


async def test_a_worker_with_many_shards_is_known_until_it_has_swept_them_twice(rig: Rig) -> None:
    turn = Turn(rig.next_call(), 0, is_sweep=True, next_sweep_us=50 * SECOND)
    await rig.engine.exchange("q", "worker", "worker", turn)
    assert (await rig.dump())["workers"] == [("worker", T0 + 100 * SECOND)]


async def test_samples_are_added_to_the_counters(rig: Rig) -> None:
    sent = [1, 1, 0, 0, [5, 5, 1], [7, 7, 1], [12, 12, 1]]
    await rig.turn(samples={"task:send": sent})
    await rig.turn(samples={"task:send": sent})
    dump = await rig.dump()
    both = [2, 2, 0, 0, [10, 5, 2], [14, 7, 2], [24, 12, 2]]
    assert dump["stats:28333333"]["task:send"] == both
    assert "stats:28333333" in dump.mortal


async def test_a_repeated_call_gets_its_claims_again_and_changes_nothing(rig: Rig) -> None:
    await rig.add("a", "b")
    lease = await rig.claim()
    settled = ("a", lease, Completed(b"1"))
    first = await rig.turn(1, settled, ("gone", "x", Completed()), call="call5000")
    await rig.remember()
    assert await rig.turn(1, settled, ("gone", "x", Completed()), call="call5000") == first
    assert (first.lost, [claim.id for claim in first.claimed]) == (["gone"], ["b"])
    assert await rig.is_untouched()


async def test_a_repeated_call_tells_when_its_jobs_were_claimed_and_the_present(rig: Rig) -> None:
    """A job starts with its claim; what is waited for is waited for from now on."""
    await rig.add("a", "b")
    await rig.add("later", delay=60 * SECOND)
    first = await rig.turn(2, call="call5000")
    rig.clock.go(3)
    again = await rig.turn(2, call="call5000")
    assert (first.now, first.claimed_at) == (T0, T0)
    assert again == first._replace(now=T0 + 3 * SECOND)
    assert (await rig.engine.renew("q", [("a", "call5000")])) == ([], [])
    assert (await rig.turn(2, call="call5000")).claimed_at == T0  # a renewal is no claim


async def test_a_repeated_call_without_claims_has_only_the_present(rig: Rig) -> None:
    await rig.add("a")
    await rig.turn(1, call="call5000", worker="slow")
    rig.clock.go(LEASE / SECOND)
    await rig.turn(1, worker="quick")
    again = await rig.turn(1, call="call5000", worker="slow")
    assert (again.claimed, again.claimed_at, again.now) == ([], T0 + LEASE, T0 + LEASE)


async def test_a_repeated_call_survives_a_lease_that_nobody_can_read(rig: Rig) -> None:
    await rig.add("a")
    await rig.turn(1, call="call5000")
    await rig.engine.command("HSET", "q", "leases", "a", "call5000 soon")
    rig.clock.go(1)
    assert (await rig.turn(1, call="call5000")).claimed_at == T0 + SECOND


async def test_a_repeated_call_is_not_given_leases_that_were_lost_since(rig: Rig) -> None:
    await rig.add("a", "b")
    await rig.turn(2, call="call5000", worker="slow")
    rig.clock.go(LEASE / SECOND)
    await rig.turn(1, worker="quick")
    await rig.remember()
    assert (await rig.turn(2, call="call5000", worker="slow")).claimed == []
    assert await rig.is_untouched()


async def test_a_call_that_a_later_one_has_overtaken_claims_nothing(rig: Rig) -> None:
    """Its worker has gone on: the jobs would be stranded until their leases run out."""
    await rig.add("a")
    await rig.turn(call="call5000")
    await rig.turn(call="call5001")
    await rig.remember()
    with pytest.raises(InternalError):
        await rig.turn(1, call="call5000")
    assert await rig.is_untouched()


async def test_a_queue_without_settings_serves_nothing(rig: Rig) -> None:
    await rig.obliterate()
    await rig.remember()
    named = {"caller": "w", "lease": "l", "worker": "w", "want": 1, "least_us": 0}
    assert await rig.engine.ask("exchange", "q", **named, plain=0, kept=0) == [b"UNCONFIGURED"]
    assert await rig.is_untouched()


async def test_settings_that_the_server_lost_are_declared_again(rig: Rig) -> None:
    await rig.declare(max_running=1)
    await rig.obliterate()
    await rig.engine.wire.call("FLUSHALL")
    await rig.add("a", "b")
    assert len((await rig.turn(2)).claimed) == 1


async def test_specs_come_back_byte_for_byte(rig: Rig) -> None:
    body = msgspec.json.encode({"n": 2**63 - 1, "empty": [], "nul": "\0"}) + b"\x00\xff\n\n"
    await rig.add("a", body=body)
    (claim,) = (await rig.turn(1)).claimed
    assert claim.spec == b"010\n" + body


async def test_a_large_batch_is_claimed_and_settled_in_one_call(rig: Rig) -> None:
    ids = [f"job{number:04d}" for number in range(1000)]
    await rig.add(*ids)
    first = await rig.turn(1000)
    assert [claim.id for claim in first.claimed] == ids
    endings = [(claim.id, claim.lease, Completed()) for claim in first.claimed]
    assert (await rig.turn(1000, *endings)).lost == []
    assert (await rig.dump())["clock"]["enqueued"] == 1000


async def test_an_exchange_that_wants_less_than_nothing_is_refused_before_it_settles(
    rig: Rig,
) -> None:
    await rig.add("a", "b")
    lease = await rig.claim()
    await rig.remember()
    with pytest.raises(ScriptError, match="BAD_ARGUMENT want"):
        await rig.turn(-1, ("a", lease, Completed()))
    assert await rig.is_untouched()


async def test_all_jobs_that_are_due_are_made_ready_together_and_no_other(rig: Rig) -> None:
    for number, job in enumerate(("a", "b", "c", "d"), 1):
        await rig.add(job, delay=number * SECOND)
    rig.clock.go(3)
    exchanged = await rig.turn()
    assert await rig.states() == {"a": "ready", "b": "ready", "c": "ready", "d": "delayed"}
    assert exchanged.next_at == T0 + 4 * SECOND
    assert [claim.id for claim in (await rig.turn(9)).claimed] == ["a", "b", "c"]


async def test_a_claim_from_a_quiet_queue_asks_once_what_others_ask_five_times(rig: Rig) -> None:
    async def asked() -> Counter[str]:
        info = (await rig.engine.wire.call("INFO", "commandstats")).decode()
        calls = re.findall(r"cmdstat_(\w+):calls=(\d+)", info)
        return Counter({verb: int(number) for verb, number in calls})

    await rig.turn()  # the settings are read, and nothing is to be pruned for a second
    await rig.add("a")
    before = await asked()
    assert len((await rig.turn(1)).claimed) == 1
    spent = await asked() - before
    assert {verb: spent[verb] for verb in ("zrange", "hgetall")} == {"zrange": 0, "hgetall": 0}


async def test_the_record_of_a_call_outlives_any_lease(rig: Rig) -> None:
    longest_s = 3600
    await rig.declare(lease=f"{longest_s}s")
    await rig.add("alone")
    await rig.add("a", "b")
    await rig.claim()
    for caller in ("producer", "worker"):
        left_s = await rig.engine.command("TTL", "q", f"call:{caller}")
        assert longest_s - 60 < left_s <= longest_s, caller
