"""page.lua"""

from __future__ import annotations

import pytest

from faena.options import Retain
from faena.outcomes import Completed
from tests._support.rig import SECOND, Rig


async def test_pages_follow_each_other_in_order_and_in_reverse(rig: Rig) -> None:
    ids = ["a", "b", "c", "d", "e"]
    await rig.add(*ids)
    for is_reverse, wanted in ((False, ids), (True, ids[::-1])):
        read: list[str] = []
        after = ("", "")
        while page := await rig.engine.page("q", "ready", 2, after=after, is_reverse=is_reverse):
            read += [job for job, _ in page]
            after = page[-1]
        assert read == wanted


async def test_a_page_goes_on_though_the_job_it_stopped_at_has_moved(rig: Rig) -> None:
    await rig.add("a", "b", "c", "d")
    page = await rig.engine.page("q", "ready", 2, after=("", ""), is_reverse=False)
    await rig.engine.cancel("q", ["a", "b"])
    page = await rig.engine.page("q", "ready", 2, after=page[-1], is_reverse=False)
    assert [job for job, _ in page] == ["c", "d"]


@pytest.mark.parametrize("is_reverse", [False, True])
async def test_jobs_of_one_instant_are_each_shown_once_though_the_place_is_taken_no_more(
    rig: Rig, is_reverse: bool
) -> None:
    ids = [f"j{number:02d}" for number in range(20)]
    await rig.declare(retain=Retain(completed_count=100))
    await rig.add(*ids)
    lease = await rig.claim(20)
    await rig.turn(0, *((job, lease, Completed()) for job in ids))
    read: list[str] = []
    after = ("", "")
    while page := await rig.engine.page("q", "completed", 3, after=after, is_reverse=is_reverse):
        read += [job for job, _ in page]
        after = page[-1]
        await rig.engine.rerun("q", [after[0]])
    assert read == (ids[::-1] if is_reverse else ids)


@pytest.mark.parametrize(("is_reverse", "wanted"), [(False, "bca"), (True, "ba")])
async def test_a_page_goes_on_at_its_place_though_the_job_there_was_put_off(
    rig: Rig, is_reverse: bool, wanted: str
) -> None:
    for job, seconds in (("a", 10), ("b", 20), ("c", 30)):
        await rig.add(job, delay=seconds * SECOND)
    page = await rig.engine.page("q", "delayed", 1, after=("", ""), is_reverse=is_reverse)
    await rig.engine.change("q", page[0][0], delay_us=60 * SECOND)
    rest = await rig.engine.page("q", "delayed", 5, after=page[0], is_reverse=is_reverse)
    assert "".join(job for job, _ in rest) == wanted
