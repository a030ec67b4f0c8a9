"""scan.lua"""

from __future__ import annotations

from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, Rig
from tests._support.transfer import Transfer


async def called(transfer: Transfer, lane: str = "") -> dict[str, str]:
    """Every job that answers, which does so once at least."""
    return {job: its async for jobs in transfer.moving.scan("q", lane) for job, its in jobs}


async def test_jobs_of_every_state_answer_with_their_lane(rig: Rig, transfer: Transfer) -> None:
    await rig.run("laneless", Completed())
    await rig.run("done", Completed(), lane="@a")
    await rig.run("dead", Buried(BOOM), lane="@b")
    await rig.add("runs", lane="@a")
    await rig.claim()
    await rig.add("waits", "behind", lane="@a", chain="t/a")
    await rig.add("later", lane="@b", delay=1000)
    await rig.add("common")
    everybody = {
        "done": "@a",
        "dead": "@b",
        "runs": "@a",
        "waits": "@a",
        "behind": "@a",
        "later": "@b",
        "common": "@",
    }
    await rig.remember()
    assert await called(transfer) == everybody
    assert await called(transfer, "@b") == {"dead": "@b", "later": "@b"}
    assert await called(transfer, "@") == {"common": "@"}
    assert await rig.is_untouched()


async def test_a_slice_at_a_call_reaches_everybody(rig: Rig, transfer: Transfer) -> None:
    for start in range(0, 1500, 500):
        await rig.add(*(f"j{n:04d}" for n in range(start, start + 500)), lane="@a")
    assert len(await called(transfer, "@a")) == 1500
    cursor, *flat = await rig.engine.ask("scan", "q", cursor="0", most=100)
    assert cursor != b"0"
    assert 0 < len(flat) / 2 < 500


async def test_an_empty_shard_has_nobody(transfer: Transfer) -> None:
    assert await called(transfer) == {}
