"""Capacity: what queues need, and what it would be otherwise, within a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from faena import Faena, Limit
from faena.task import Task
from faena.web.access.access import Access
from faena.web.advised import Advised, Change, TooLong
from faena.web.application import Dashboard, dashboard
from tests._support.eventually import PATIENCE_S, eventually
from tests.web.conftest import Browser

_JOBS = 130


@pytest.fixture
def work(app: Faena) -> Task[int, None]:
    mail = app.queue("mail", concurrency=2, limits=[Limit("100000/min")])
    app.queue("idle")

    @mail.task
    async def work(number: int) -> None: ...

    return work


@pytest.fixture
async def web(app: Faena, web: Dashboard) -> AsyncIterator[Dashboard]:
    """One whose pages wait until all is there: other tests are about those that do not."""
    site = await web.site()
    patient = Advised(app, patience_s=PATIENCE_S)
    object.__setattr__(site, "advised", patient)
    yield web
    await patient.close()


async def _run(app: Faena, work: Task[int, None], number: int = _JOBS) -> None:
    for tenant in ("acme", "bolt"):
        await work.enqueue_many([1] * (number // 2), tenant=tenant)
    await app.run_worker(until_empty=True)


async def test_queues_without_enough_jobs_say_so(
    app: Faena, work: Task[int, None], browser: Browser
) -> None:
    await _run(app, work, 4)
    await browser.sign_in("a-viewer")
    page = await browser.get("/capacity")
    assert "No attempt has ended in the window" in page.text
    assert "Only 4 attempts began, too few to advise from" in page.text
    assert "refresh" not in page.headers


async def test_a_queue_is_told_what_is_right(
    app: Faena, work: Task[int, None], browser: Browser
) -> None:
    await _run(app, work)
    await browser.sign_in("a-viewer")
    page = await browser.get("/capacity?window=15m")
    assert "would be enough: 1 to spare" in page.text
    page = await browser.get("/capacity/mail?window=15m")
    assert page.status_code == 200
    assert "Move a slider, then replay" in page.text
    assert 'type="range" name="slots"' in page.text
    assert 'name="weight.acme"' in page.text


async def test_a_change_is_replayed_in_words_and_as_a_picture(
    app: Faena, work: Task[int, None], browser: Browser
) -> None:
    await _run(app, work)
    await browser.sign_in("a-viewer")
    page = await browser.get("/capacity/mail?window=15m&slots=1&weight.acme=3&limits=50/s")
    assert page.status_code == 200
    assert "With 1 slot, 5 % of jobs would wait longer than" in page.text
    assert "p95 of waits through the window" in page.text
    assert "Wait p95 of acme" in page.text
    assert "130 jobs replayed" in page.text
    assert page.text.count('class="series series-') == 4
    assert app.queues["mail"].options.limits == (await app.queues["mail"].settings()).limits
    without = await browser.get("/capacity/mail?window=15m&without=1")
    assert "130 jobs replayed" in without.text
    assert 'name="without" value="1" checked' in without.text


async def test_what_cannot_be_replayed_is_said_on_the_page(
    app: Faena, work: Task[int, None], browser: Browser
) -> None:
    await _run(app, work, 4)
    await browser.sign_in("a-viewer")
    for query in (
        *("slots=0", "slots=x", "slots=9999999", "limits=soon", "limits=%00", "weight.acme=x"),
        *("weight.acme=-1", "weight.nobody=3", "rate=x", "rate=100000"),
    ):
        page = await browser.get(f"/capacity/mail?{query}")
        assert page.status_code == 422, query
        assert "What if" in page.text, query
    for path in ("/capacity?window=1y", "/capacity/mail?window=7d", "/capacity?from=x"):
        assert (await browser.get(path)).status_code == 422, path
    assert (await browser.get("/capacity/nail")).status_code == 404
    page = await browser.get("/capacity/idle?slots=9")
    assert "nothing to replay" in page.text


async def test_a_page_does_not_wait_for_all_queues(
    app: Faena, work: Task[int, None], browser: Browser
) -> None:
    """It shows what is there, and is asked for again by itself."""
    hasty = dashboard(app, access=Access(link=True))
    advised = Advised(app, patience_s=0)
    found, is_whole = await advised.advice("1h")
    assert (dict(found), is_whole) == ({}, False)

    async def is_there() -> bool:
        return (await advised.advice("1h"))[1]

    await eventually(is_there)
    await advised.close()
    await hasty.close()


async def test_a_page_that_is_not_whole_asks_for_itself_again(
    app: Faena, work: Task[int, None], web: Dashboard, browser: Browser
) -> None:
    site = await web.site()
    hasty = Advised(app, patience_s=0)
    object.__setattr__(site, "advised", hasty)
    await _run(app, work, 4)
    await browser.sign_in("a-viewer")
    page = await browser.get("/capacity")
    assert page.headers["refresh"] == "5"
    assert "0 of 2 queues have been looked at." in page.text
    page = await browser.get("/capacity/mail?slots=9")
    assert page.headers["refresh"] == "5"
    assert "It is being replayed" in page.text

    async def is_replayed() -> bool:
        return "4 jobs replayed" in (await browser.get("/capacity/mail?slots=9")).text

    await eventually(is_replayed)
    await hasty.close()


async def test_a_replay_that_takes_too_long_is_given_up(app: Faena, work: Task[int, None]) -> None:
    await _run(app, work, 4)
    advised = Advised(app, patience_s=PATIENCE_S, longest_s=-1)
    change = Change("mail", "1h", 9, None, None)
    with pytest.raises(TooLong):
        await advised.replay(change)
    await advised.close()


async def test_only_some_replays_wait_for_their_turn(app: Faena, work: Task[int, None]) -> None:
    advised = Advised(app, patience_s=0)
    changes = [Change("mail", "1h", slots, None, None) for slots in range(3, 11)]
    found = await asyncio.gather(*map(advised.replay, changes), return_exceptions=True)
    assert [type(one) for one in found[-2:]] == [TooLong, TooLong]
    assert found[:6] == [0] * 6
    await advised.close()
