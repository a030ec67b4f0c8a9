"""idem.lua"""

from __future__ import annotations

import pytest

from tests._support.rig import Rig


async def step(
    rig: Rig, verb: str, owner: str = "job1", blob: bytes = b"", token: str = ""
) -> list[bytes]:
    return await rig.engine.idem(
        "q", hash="key", verb=verb, owner=owner, ttl_ms=60_000, blob=blob, token=token
    )


async def test_a_record_begins_pending_and_has_an_end(rig: Rig) -> None:
    assert await step(rig, "begin") == [b"began"]
    taken = await rig.dump()
    assert taken == {"idem:key": {"status": "pending", "owner": "job1", "blob": "", "token": ""}}
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


async def test_the_first_result_stands(rig: Rig) -> None:
    await step(rig, "complete", blob=b"first")
    await rig.remember()
    assert await step(rig, "complete", blob=b"second") == [b"OK"]
    assert await rig.is_untouched()


@pytest.mark.parametrize("verb", ["extend", "fail"])
async def test_only_who_began_last_extends_or_gives_up(rig: Rig, verb: str) -> None:
    await step(rig, "begin", token="t1")
    await step(rig, "begin", token="t2")
    await rig.remember()
    assert await step(rig, verb, token="t1") == [b"NOT_OWNER"]
    assert await step(rig, verb, "job2", token="t2") == [b"NOT_OWNER"]
    assert await rig.is_untouched()
    assert await step(rig, verb, token="t2") == [b"OK"]
    status = (await rig.dump())["idem:key"]["status"]
    assert status == ("pending" if verb == "extend" else "failed")


@pytest.mark.parametrize("verb", ["extend", "fail"])
async def test_what_is_done_is_neither_extended_nor_given_up(rig: Rig, verb: str) -> None:
    await step(rig, "begin", token="t1")
    await step(rig, "complete", blob=b"paid")
    await rig.remember()
    assert await step(rig, verb, token="t1") == [b"NOT_OWNER"]
    assert await rig.is_untouched()


async def test_a_record_that_has_ended_is_not_extended(rig: Rig) -> None:
    assert await step(rig, "extend", token="t1") == [b"NOT_OWNER"]
    assert await rig.dump() == {}


async def test_what_an_attempt_that_was_succeeded_completes_is_done(rig: Rig) -> None:
    await step(rig, "begin", token="t1")
    await step(rig, "begin", token="t2")
    assert await step(rig, "complete", blob=b"paid") == [b"OK"]
    assert await step(rig, "begin", "job2") == [b"completed", b"job1", b"paid"]
