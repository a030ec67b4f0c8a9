"""exchange.lua: hooks are made by the call that ends the attempt."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from faena.engine.settings import declaration
from faena.job import Spec
from faena.options import QueueOptions
from faena.outcomes import Buried, Cancelled, Completed, Released, Retried, Snoozed
from tests._support.rig import BOOM, BOOM_JSON, LEASE, SECOND, T0, Rig, score

BODY = b'{"task":"send","payload":{"n":1},"tenant":"a\\"b","key":"k"}'


def hooked(rig: Rig, *ends: str, **options: Any) -> None:
    declared = QueueOptions(**options)
    for end in ends:
        declared.hooks[end, "send"] = f"send.{end}"
    rig.engine.know(rig.queue, declaration(declared))


async def hooks(rig: Rig) -> list[dict[str, Any]]:
    """The specs of hooks that are there, in the order of their ids."""
    specs = (await rig.dump()).get("specs", {})
    return [
        msgspec.json.decode(specs[job].partition(b"\n")[2])
        for job in sorted(specs)
        if job.startswith(("dead-", "failed-"))
    ]


async def test_a_death_adds_one_ready_job_that_tells_of_it(rig: Rig) -> None:
    hooked(rig, "dead")
    await rig.add("j", body=BODY, priority=3)
    lease = await rig.claim()
    rig.clock.go(1)
    await rig.turn(0, ("j", lease, Buried(BOOM)))
    (hook,) = await hooks(rig)
    assert hook == {
        "task": "send.dead",
        "tenant": 'a"b',
        "key": "k",
        "payload": {
            "job_id": "j",
            "task": "send",
            "tenant": 'a"b',
            "key": "k",
            "attempts_made": 1,
            "losses": 0,
            "at": T0 + SECOND,
            "error": msgspec.json.decode(BOOM_JSON),
        },
    }
    ((job, place),) = (await rig.dump())["ready"]
    assert job.startswith("dead-")
    assert place == score(T0 + SECOND, priority=3)
    assert await rig.states() == {"j": "dead", job: "ready"}


async def test_a_settlement_that_is_sent_again_adds_no_other(rig: Rig) -> None:
    hooked(rig, "dead", "failed")
    await rig.add("j", body=BODY)
    lease = await rig.claim()
    call = rig.next_call()
    for _ in range(2):
        await rig.turn(0, ("j", lease, Buried(BOOM)), call=call)
    await rig.turn(0, ("j", lease, Buried(BOOM)))  # by another call: the lease is over
    assert [hook["task"] for hook in await hooks(rig)] == ["send.dead", "send.failed"]


async def test_a_job_that_cost_too_many_workers_has_its_hook_without_being_read(rig: Rig) -> None:
    hooked(rig, "dead", "failed", max_deliveries=2)
    await rig.add("j", body=b'{"task":"send","payload":{broken')
    for _ in range(2):
        await rig.claim()
        rig.clock.go(LEASE / SECOND)
        await rig.turn()
    (hook,) = await hooks(rig)
    told = hook["payload"]
    assert (told["job_id"], told["attempts_made"], told["losses"]) == ("j", 0, 2)
    assert told["error"]["code"] == "WORKER_LOST"


@pytest.mark.parametrize(
    ("outcome", "made"),
    [
        (Completed(), []),
        (Snoozed(5), []),
        (Released(), []),
        (Cancelled(BOOM), []),
        (Retried(5, BOOM), ["send.failed"]),
        (Buried(BOOM), ["send.dead", "send.failed"]),
        (Buried(BOOM, has_run=False), ["send.dead"]),
    ],
    ids=repr,
)
async def test_only_failures_and_deaths_have_hooks(rig: Rig, outcome: Any, made: list[str]) -> None:
    hooked(rig, "dead", "failed")
    await rig.run("j", outcome, body=BODY)
    assert [hook["task"] for hook in await hooks(rig)] == made


async def test_a_program_that_does_not_know_a_hook_leaves_it_and_one_that_has_none_ends_it(
    rig: Rig,
) -> None:
    hooked(rig, "dead")
    await rig.engine.declare(rig.queue)
    await rig.declare()  # a producer's, with no word of hooks
    await rig.run("j", Buried(BOOM), body=BODY)
    assert len(await hooks(rig)) == 1
    without = QueueOptions()
    without.hooks["dead", "send"] = ""
    rig.engine.know(rig.queue, declaration(without))
    await rig.engine.declare(rig.queue)
    await rig.turn(1)
    await rig.run("k", Buried(BOOM), body=BODY)
    assert len(await hooks(rig)) == 1


async def test_a_hook_stands_in_the_lane_of_its_job_unless_that_moves_away(rig: Rig) -> None:
    hooked(rig, "dead")
    await rig.add("a", "b", body=BODY, lane="@acme")
    lease = await rig.claim(2)
    await rig.turn(0, ("a", lease, Buried(BOOM)))
    taken = await rig.dump()
    assert [job[:5] for job, _ in taken["lane:@acme"]] == ["dead-"]
    assert taken["lanes"] == {"@acme": "2000001"}  # the hook waits, and the other job runs
    await rig.engine.command("HSET", rig.queue, "moves", "@acme", "out 1")
    await rig.turn(0, ("b", lease, Buried(BOOM)))
    specs = (await rig.dump())["specs"]
    lines = sorted(specs[job].partition(b"\n")[0] for job in specs if job.startswith("dead-"))
    assert lines == [b"010 lane=@", b"010 lane=@acme"]  # with the jobs that have no tenant
    await rig.engine.command("DEL", rig.queue, "moves")


async def test_a_hook_of_a_job_whose_lane_has_gone_ahead_stays_out_of_that_lane(rig: Rig) -> None:
    hooked(rig, "dead")
    await rig.add("a", body=BODY, lane="@acme")
    lease = await rig.claim()
    await rig.engine.command("HSET", rig.queue, "late", "a", "@acme")
    await rig.turn(0, ("a", lease, Buried(BOOM)))
    specs = (await rig.dump())["specs"]
    (hook,) = [specs[job] for job in specs if job.startswith("dead-")]
    assert hook.partition(b"\n")[0] == b"010"
    await rig.engine.command("DEL", rig.queue, "late")


async def test_a_hook_is_told_the_key_and_the_tenant_of_a_large_job_too(rig: Rig) -> None:
    hooked(rig, "dead")
    text = msgspec.Raw(msgspec.json.encode({"tenant": "no", "text": "x" * 20_000}))
    spec = Spec(task="send", payload=text, tenant='a,"b":', key="order-7", headers={"key": "no"})
    await rig.run("j", Buried(BOOM), body=msgspec.json.encode(spec))
    (hook,) = await hooks(rig)
    assert (hook["tenant"], hook["key"]) == ('a,"b":', "order-7")
    assert (hook["payload"]["tenant"], hook["payload"]["key"]) == ('a,"b":', "order-7")


@pytest.mark.parametrize("size", [10, 20_000])
async def test_a_hook_has_the_headers_of_its_job_but_not_those_of_its_maker(
    rig: Rig, size: int
) -> None:
    hooked(rig, "dead")
    headers = {"trace": 'a},"payload":"b', "payload": "{}", "faena-schedule": "nightly"}
    text = msgspec.Raw(msgspec.json.encode({"payload": "x" * size}))
    body = msgspec.json.encode(Spec(task="send", tenant="a", headers=headers, payload=text))
    await rig.run("j", Buried(BOOM), body=body)
    (hook,) = await hooks(rig)
    assert hook["headers"] == {"trace": 'a},"payload":"b', "payload": "{}"}
    assert (hook["tenant"], hook["payload"]["task"]) == ("a", "send")


@pytest.mark.parametrize("headers", [b"7", b"[1,null]", b'{"a":{"b":1}}', b"{}", b"null"])
async def test_headers_that_are_none_make_no_hook_fail(rig: Rig, headers: bytes) -> None:
    hooked(rig, "dead")
    await rig.run("j", Buried(BOOM), body=b'{"task":"send","headers":' + headers + b"}")
    (hook,) = await hooks(rig)
    assert "headers" not in hook
