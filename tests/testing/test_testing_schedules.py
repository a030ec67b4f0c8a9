"""Schedules in a drain: they fire, unless they are left out, and do not make it long in silence."""

from __future__ import annotations

import pytest

from faena import Faena, Retry
from faena.errors import ConfigError
from faena.testing import harness

URL = "redis://localhost"  # never dialled: the harness takes its place


@pytest.fixture
def app() -> Faena:
    app = Faena("shop", URL)

    @app.every("2s")
    async def heartbeat() -> None: ...

    @app.queue("mail", retry=Retry.fixed("20m", attempts=2, jitter=0)).task
    async def send(to: str) -> None:
        raise ConnectionError(to)

    return app


async def test_a_drain_can_leave_schedules_out(app: Faena) -> None:
    async with harness(app) as h:
        await app.queues["mail"].tasks["send"].enqueue("ana")
        assert (await h.drain(through="1h", schedules=False)).counts == {"retried": 1, "dead": 1}


async def test_schedules_of_queues_that_are_not_drained_do_not_fire(app: Faena) -> None:
    async with harness(app) as h:
        mail = app.queues["mail"]
        await mail.tasks["send"].enqueue("ana")
        assert (await h.drain(mail, through="1h")).counts == {"retried": 1, "dead": 1}


async def test_a_drain_that_schedules_make_long_says_so_once(app: Faena) -> None:
    async with harness(app) as h:
        with pytest.warns(UserWarning, match="500 instants of .*schedules=False") as told:
            ran = await h.drain(through="17m")
    assert ran.counts == {"completed": 17 * 30}
    assert len(told) == 1


async def test_schedules_must_be_a_yes_or_no(app: Faena) -> None:
    async with harness(app) as h:
        with pytest.raises(ConfigError, match="schedules must be a bool, got 'heartbeat'"):
            await h.drain(schedules="heartbeat")  # type: ignore[arg-type]
