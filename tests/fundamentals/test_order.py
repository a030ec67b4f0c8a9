"""Which job comes next, and when."""

from __future__ import annotations

from faena import Faena, Priority
from faena.testing import Harness


async def test_jobs_of_one_priority_run_in_the_order_they_came(app: Faena, h: Harness) -> None:
    @app.queue("mail").task
    async def note(number: int) -> int:
        return number

    for number in range(5):
        await note.enqueue(number)
    assert [ran.result for ran in await h.drain()] == [0, 1, 2, 3, 4]


async def test_a_lower_priority_number_runs_sooner(app: Faena, h: Harness) -> None:
    @app.queue("mail").task
    async def note(word: str) -> str:
        return word

    await note.enqueue("bulk", priority=Priority.BULK)
    await note.enqueue("normal")
    await note.enqueue("seven", priority=7)
    await note.enqueue("critical", priority="critical")
    ran = [one.result for one in await h.drain()]
    assert ran == ["critical", "seven", "normal", "bulk"]


async def test_waiting_raises_a_jobs_priority_so_that_none_starves(app: Faena, h: Harness) -> None:
    @app.queue("mail", age_step="1m").task
    async def note(word: str) -> str:
        return word

    await note.enqueue("old and low", priority=20)
    h.clock.advance("16m")
    await note.enqueue("new and high", priority=5)
    assert [ran.result for ran in await h.drain()] == ["old and low", "new and high"]


async def test_a_delayed_job_waits_for_its_instant_or_until_it_is_promoted(
    app: Faena, h: Harness
) -> None:
    @app.queue("mail").task
    async def note(word: str) -> str:
        return word

    await note.enqueue("later", delay="1h")
    receipt = await note.enqueue("much later", delay="7d")
    h.clock.advance("1h")
    assert [ran.result for ran in await h.drain()] == ["later"]
    await receipt.handle.promote()
    assert [ran.result for ran in await h.drain()] == ["much later"]


async def test_delay_and_priority_of_a_waiting_job_can_be_changed(app: Faena, h: Harness) -> None:
    @app.queue("mail").task
    async def note(word: str) -> str:
        return word

    first = await note.enqueue("first")
    await note.enqueue("second")
    late = await note.enqueue("late", delay="1h")
    await first.handle.change(priority="low")
    await late.handle.change(delay="5m")
    await h.assert_enqueued(note, payload="late", due_in="5m")
    assert [ran.result for ran in await h.drain()] == ["second", "first"]
