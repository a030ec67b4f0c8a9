"""idem.lua"""

from __future__ import annotations

import pytest

from tests._support.rig import Rig


async def step(rig: Rig, verb: str, owner: str = "job1", blob: bytes = b"") -> list[bytes]:
    return await rig.engine.idem("q", ["key", verb, owner, 60_000, blob])


async def test_a_record_begins_pending_and_has_an_end(rig: Rig) -> None:
    assert await step(rig, "begin") == [b"began"]
    taken = await rig.dump()
    assert taken == {"idem:key": {"status": "pending", "owner": "job1", "blob": ""}}
    assert taken.mortal == {"idem:key"}


async def test_its_owner_may_begin_again_and_nobody_else(rig: Rig) -> None:
    await step(rig, "begin")
    await rig.remember()
    assert await step(rig, "begin") == [b"began"]
    assert await step(rig, "begin", "job2") == [b"pending", b"job1", b""]
    assert await rig.is_untouched()


async def test_a_completed_record_answers_everybody_with_its_result(rig: Rig) -> None:
    await step(rig, "begin")
    assert await step(rig, "complete", blob=b"result") == [b"OK"]
    await rig.remember()
    assert await step(rig, "begin") == [b"completed", b"job1", b"result"]
    assert await step(rig, "begin", "job2") == [b"completed", b"job1", b"result"]
    assert await step(rig, "complete", blob=b"result") == [b"OK"]
    assert await rig.is_untouched()


async def test_a_failed_record_may_be_begun_by_another(rig: Rig) -> None:
    await step(rig, "begin")
    assert await step(rig, "fail", blob=b"why") == [b"OK"]
    assert await step(rig, "begin", "job2") == [b"began"]
    assert (await rig.dump())["idem:key"]["owner"] == "job2"


@pytest.mark.parametrize("verb", ["complete", "fail", "clear"])
async def test_only_the_owner_ends_a_record(rig: Rig, verb: str) -> None:
    await step(rig, "begin")
    await rig.remember()
    assert await step(rig, verb, "job2") == [b"NOT_OWNER"]
    assert await rig.is_untouched()


async def test_a_cleared_record_is_gone_and_may_be_cleared_again(rig: Rig) -> None:
    await step(rig, "begin")
    assert await step(rig, "clear") == [b"OK"]
    assert await step(rig, "clear") == [b"OK"]
    assert await rig.dump() == {}


async def test_work_that_outlived_its_record_still_leaves_its_result(rig: Rig) -> None:
    assert await step(rig, "complete", blob=b"late") == [b"OK"]
    assert await step(rig, "begin", "job2") == [b"completed", b"job1", b"late"]
