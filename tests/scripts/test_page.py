"""page.lua"""

from __future__ import annotations

from tests._support.rig import Rig


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
