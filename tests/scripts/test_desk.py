"""desk.lua, and what a burial writes for it"""

from __future__ import annotations

import pytest

from faena.engine.calls.deadletter import Filter, Position, Record
from faena.outcomes import Buried, Completed, DeathNote
from tests._support.desk_rig import DeskRig
from tests._support.rig import BOOM, KEEP_NONE, LEASE, SECOND, T0, Rig


async def test_a_buried_job_is_found_under_everything_its_note_says(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a", tenant="acme", code="E1")
    taken = await rig.dump()
    record = {"s": "pending", "t": "send", "o": "acme", "e": "Boom", "c": "E1", "f": "f00"}
    assert taken["desk"] == {"a": record}
    shelves = {name for name in taken if name.startswith("desk:")}
    assert shelves == {
        *("desk:status:pending", "desk:task:send", "desk:tenant:acme", "desk:print:f00"),
        *("desk:error:Boom", "desk:error:E1"),
    }
    assert all(taken[name] == [("a", T0)] for name in shelves)
    assert taken["desk_groups"] == [("f00", 1.0)]
    assert taken["desk_samples"] == {"f00": ["Boom", "E1", "it broke"]}
    assert "desk_due" not in taken
    assert taken["info:a"]["error:1"] == '{"name":"Boom","message":"it broke","code":"E1"}'


@pytest.mark.parametrize("part", ["task", "tenant", "name", "code", "fingerprint", "sample"])
async def test_a_note_that_is_none_counts_as_no_note(
    rig: Rig, desk_rig: DeskRig, part: str
) -> None:
    await desk_rig.bury("a", **{part: 7})
    taken = await rig.dump()
    (fingerprint,) = taken["desk_samples"]
    assert len(fingerprint) == 12
    assert taken["desk"]["a"]["f"] == fingerprint
    assert all(isinstance(word, str) for word in taken["desk_samples"][fingerprint])


async def test_the_sample_of_a_kind_of_error_is_that_of_the_first(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a")
    await desk_rig.bury("b", sample="it broke again")
    assert (await rig.dump())["desk_samples"] == {"f00": ["Boom", "", "it broke"]}


async def test_a_job_that_completes_owes_the_desk_nothing(rig: Rig) -> None:
    await rig.run("a", Completed(b"1"))
    assert not [name for name in await rig.dump() if name.startswith("desk")]


async def test_a_queue_that_keeps_no_dead_jobs_has_no_desk(rig: Rig, desk_rig: DeskRig) -> None:
    await rig.declare(retain=KEEP_NONE)
    await desk_rig.bury("a", retry_us=SECOND, most=2)
    assert not [name for name in await rig.dump() if name.startswith("desk")]


BODIES = {
    b'{"task":"send","payload":{"tenant":"no"},"tenant":"acme"}': ("send", "acme"),
    b'{"task":"send","payload":[18446744073709551615,{"a":[]}]}': ("send", ""),
    b'{"task":"send","tenant":7}': ("send", ""),
    b'{"task":"send","payload":"' + b"x" * 20_000 + b'","tenant":"acme"}': ("send", ""),
    b'{"task":"send","tenant":"a,\\"b\\":","payload":"' + b"x" * 20_000 + b'"}': ("send", 'a,"b":'),
    b'{"task":"send","tenant":"a,","key":"' + b"x" * 20_000 + b'"}': ("send", ""),
    b'{"task":"send","tenant":7,"payload":"' + b"x" * 20_000 + b'"}': ("send", ""),
    b'{"task":"send","tenant":,"payload":"' + b"x" * 20_000 + b'"}': ("send", ""),
    b',"key":' * 4_000: ("", ""),
    b'{"task":"send","payload":' + b"[" * 1500 + b"]" * 1500 + b"}": ("send", ""),
    b"[1]": ("", ""),
    b"null": ("", ""),
    b"not json \xff": ("", ""),
}


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
async def test_without_a_note_the_spec_and_the_error_tell(rig: Rig, body: bytes) -> None:
    await rig.run("a", Buried(BOOM), body=body)
    record = (await rig.dump())["desk"]["a"]
    assert (record["t"], record["o"]) == BODIES[body]
    assert (record["e"], record["c"], len(record["f"])) == ("Boom", "", 12)


async def test_a_job_that_cost_too_many_workers_is_found_by_its_lane_and_its_code(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await rig.declare(max_deliveries=1)
    await rig.add("a", lane="@acme", body=b'{"task":"send"}')
    await rig.claim()
    rig.clock.go(LEASE / SECOND + 1)
    await rig.turn()
    assert await desk_rig.page(error="WORKER_LOST", tenant="acme", task="send") == ["a"]


async def test_a_job_that_was_asked_to_stop_is_cancelled_with_its_error_alone(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.cancel("q", ["a"])
    await rig.turn(0, ("a", lease, Buried(BOOM, note=DeathNote("t"))))
    taken = await rig.dump()
    assert taken["info:a"]["error:1"] == '{"name":"Boom","message":"it broke"}'
    assert "desk" not in taken


async def test_a_retryable_job_is_due_until_its_line_has_spent_its_retries(
    rig: Rig, desk_rig: DeskRig
) -> None:
    again = {"retry_us": 10 * SECOND, "most": 1}
    await desk_rig.bury("a", **again)
    assert (await rig.dump())["desk_due"] == [("a", T0 + 10 * SECOND)]
    assert await desk_rig.retry_as_new("a", action="auto") == ["OK"]
    await desk_rig.end("a2", **again)
    taken = await rig.dump()
    assert "desk_due" not in taken
    assert taken["marks"]["a2"]["x"] == 1


# -- pages --------------------------------------------------------------------------------------


async def test_filters_are_checked_together(desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", tenant="x", code="E1")
    await desk_rig.bury("b", tenant="y", code="E1", task="other")
    await desk_rig.bury("c", tenant="x", name="Bang", fingerprint="f01")
    assert await desk_rig.page() == ["a", "b", "c"]
    assert await desk_rig.page(newest=True) == ["c", "b", "a"]
    assert await desk_rig.page(tenant="x") == ["a", "c"]
    assert await desk_rig.page(tenant="x", error="E1") == ["a"]
    assert await desk_rig.page(error="Boom") == ["a", "b"]
    assert await desk_rig.page(fingerprint="f01", task="send") == ["c"]
    assert await desk_rig.page(task="other", tenant="x") == []
    assert await desk_rig.page(status="retried") == []
    found = await desk_rig.look(tenant="y")
    assert found[0].record == Record("pending", "other", "y", "Boom", "E1", "f00")


async def test_ages_bound_a_page_at_both_ends(rig: Rig, desk_rig: DeskRig) -> None:
    for job in "abcde":
        await desk_rig.bury(job)
        rig.clock.go(1)
    bounds = {"died_from": T0 + SECOND, "died_to": T0 + 3 * SECOND}
    assert await desk_rig.page(**bounds) == ["b", "c", "d"]
    assert await desk_rig.page(newest=True, **bounds) == ["d", "c", "b"]
    assert await desk_rig.page(newest=True, died_to=T0) == ["a"]
    assert await desk_rig.page(died_from=T0 + 5 * SECOND) == []


@pytest.mark.parametrize("newest", [False, True])
async def test_pages_follow_one_another_though_jobs_go_meanwhile(
    rig: Rig, desk_rig: DeskRig, *, newest: bool
) -> None:
    jobs = [f"j{number:02d}" for number in range(30)]
    await desk_rig.bury(*jobs[:20])  # twenty of one instant
    rig.clock.go(1)
    await desk_rig.bury(*jobs[20:])
    seen: list[str] = []
    place = Position()
    while True:
        part = await desk_rig.calls.page(
            "q", Filter(status="pending"), after=place, is_reverse=newest, limit=4
        )
        seen += [one.position.id for one in part.found]
        if part.is_over:
            break
        assert place != part.reached
        place = part.reached
        await desk_rig.dismiss("discarded", *seen[-2:], seen[0])
    assert seen == (jobs[::-1] if newest else jobs)


async def test_a_look_is_bounded_and_tells_how_far_it_came(desk_rig: DeskRig) -> None:
    for start in range(0, 30, 10):
        jobs = [f"j{number:02d}" for number in range(start, start + 10)]
        await desk_rig.bury(*jobs, tenant="x" if start == 20 else "y", name=f"E{start}")
    wanted = Filter(tenant="y", task="send", error="Boom")
    part = await desk_rig.calls.page(
        "q", Filter(task="send"), after=Position(), is_reverse=False, limit=50, looked=7
    )
    assert (part.is_over, part.reached.id, len(part.found)) == (False, "j06", 7)
    part = await desk_rig.calls.page("q", wanted, after=Position(), is_reverse=False, limit=50)
    assert (part.is_over, part.found) == (True, [])  # nothing died of Boom: nothing is looked at


async def test_the_smallest_set_is_gone_through(rig: Rig, desk_rig: DeskRig) -> None:
    for start in range(0, 300, 100):
        await desk_rig.bury(*(f"j{number:03d}" for number in range(start, start + 100)))
    await desk_rig.bury("needle", tenant="acme")
    part = await desk_rig.calls.page(
        *("q", Filter("pending", "send", "acme", "Boom")),
        after=Position(),
        is_reverse=False,
        limit=1,
        looked=1,
    )
    assert [one.position.id for one in part.found] == ["needle"]


async def test_looking_changes_nothing(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    await rig.remember()
    await desk_rig.page(tenant="acme", died_to=T0)
    assert await rig.is_untouched()
