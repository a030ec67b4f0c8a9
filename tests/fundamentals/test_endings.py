"""Endings that a handler chooses, with what it says of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faena import Discard, Faena, Retry, Snooze
from faena.errors import ConfigError
from faena.states import State
from faena.testing import Harness


async def test_a_snooze_says_why_and_is_counted(app: Faena, h: Harness) -> None:
    queue = app.queue("bills")

    @queue.task
    async def charge() -> None:
        raise Snooze("10m", reason="the bank is closed")

    receipt = await charge.enqueue()
    await h.drain(through="15m")
    view = await receipt.handle.view()
    assert view is not None
    assert (view.state, view.attempts_made) == (State.DELAYED, 0)
    assert (view.snoozes, view.snooze_reason) == (2, "the bank is closed")
    assert "it was snoozed (the bank is closed), for another" in str(await receipt.handle.explain())


async def test_a_job_that_was_snoozed_as_often_as_it_may_is_dead(app: Faena, h: Harness) -> None:
    queue = app.queue("bills")

    @queue.task
    async def charge() -> None:
        raise Snooze("1m", reason="closed", most=2)

    receipt = await charge.enqueue()
    report = await h.drain(through="1h")
    assert report.counts == {"snoozed": 2, "dead": 1}
    view = await receipt.handle.view()
    assert view is not None
    assert view.errors[-1].code == "SNOOZED_TOO_OFTEN"
    assert view.errors[-1].message == (
        "snoozed 2 times, the most is 2, the last time because: closed"
    )
    await receipt.handle.rerun()
    assert (await h.drain(through="1h")).counts == {"snoozed": 2, "dead": 1}


async def test_a_snooze_of_a_bare_number_says_how_to_write_it(app: Faena, h: Harness) -> None:
    @app.queue("shop", retry=Retry.never()).task
    async def wait() -> None:
        raise Snooze(5)  # type: ignore[arg-type]

    await wait.enqueue()
    await h.drain()
    (letter,) = (await app.dead_letters.list()).items
    assert letter.error.message == (
        "snooze delay must be a timedelta, or a string such as '90s', '5m' or '1h30m', got 5; "
        "for seconds, write '5s'"
    )


async def test_a_discard_may_have_a_code(app: Faena, h: Harness) -> None:
    queue = app.queue("bills")

    @queue.task
    async def charge() -> None:
        raise Discard("no such card", code="NO_CARD")

    await charge.enqueue()
    await h.drain()
    page = await app.dead_letters.list(error="NO_CARD")
    assert [letter.error.message for letter in page.items if letter.error] == ["no such card"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Snooze("1m", most=0), "most must be"),
        (lambda: Snooze("1m", most="3"), "most must be"),
        (lambda: Snooze("1m", reason=3), "reason must be a string, got 3"),
        (lambda: Discard("no", code=""), "code must be"),
        (lambda: Discard("no", code=404), "code must be"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()
