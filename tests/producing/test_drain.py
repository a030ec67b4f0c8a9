"""Removing all that waits, when some of it waits for the rest."""

from __future__ import annotations

from faena import Faena, Retry, Unique
from faena.testing import harness
from tests._support.valkey import Server


async def test_drain_leaves_no_follower_of_a_job_that_it_removes(valkey: Server) -> None:
    app = Faena("shop")
    index = app.queue("index", retry=Retry.fixed("1h", attempts=3))

    @index.task
    async def page(_version: int) -> None:
        raise RuntimeError("not yet")

    async with harness(app, url=valkey.url) as h:
        latest = Unique.keep_last("page")
        await page.enqueue(1, unique=latest)
        await h.drain()
        await page.enqueue(2, unique=latest)
        before = await index.counts()
        assert (before["delayed"], before["blocked"]) == (1, 1)
        assert await index.drain() == 2
        assert sum((await index.counts()).values()) == 0
