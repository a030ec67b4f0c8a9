"""A relay that takes long for its rows: others may have sent them meanwhile."""

from __future__ import annotations

from typing import Any

from faena import Faena
from faena.pg import Postgres
from faena.pg.relay import OutboxRelay, RelayTerms
from faena.task import Task
from tests.pg.test_relay import Hand, _hand, _view, still  # noqa: F401 - a fixture

TURNS = 6


def _declare_two(app: Faena) -> list[Task[int, None]]:
    queue = app.queue("work")

    async def note(number: int) -> None: ...

    return [queue.task(name=name)(note) for name in ("a", "b")]


async def _enqueue_in_turn(pg: Postgres, tasks: list[Task[int, None]]) -> None:
    """Rows of two tasks in turn: the relay makes a call for each of them."""
    async with pg.transaction() as connection:
        for number in range(TURNS):
            await pg.outbox.enqueue(connection, tasks[number % 2], number)


async def _sent_after(hand: Hand, change: Any) -> int:
    """How many jobs the broker takes, if something happens after the first of them."""
    dispatch = hand.relay._dispatch
    send_run, calls = dispatch._send_run, 0

    async def send_and_change(*given: Any) -> bool:
        nonlocal calls
        calls += 1
        may_follow = await send_run(*given)
        if calls == 1:
            change()
        return may_follow

    dispatch._send_run = send_and_change  # type: ignore[method-assign]
    sent = await hand.send()
    assert sent is not None
    return sent


async def test_what_it_learns_later_makes_its_rows_no_younger(app: Faena, still: Postgres) -> None:  # noqa: F811
    """They were read when less was known to be settled: a row that another relay has sent may
    have come and gone since, and only the instant of the reading tells."""
    tasks = _declare_two(app)
    await still.outbox.publish()
    await _enqueue_in_turn(still, tasks)
    hand = await _hand(still)
    await hand.settlements.sweep()
    now_us = hand.settlements.complete_until_us
    hand.settlements.complete_until_us = now_us - 60_000_000

    def sweep() -> None:
        hand.settlements.complete_until_us = now_us

    assert await _sent_after(hand, sweep) == 0
    assert await _view(still) == (TURNS, 0, 0)


async def _taken_late(pg: Postgres) -> tuple[list[int], int | None]:
    """How many rows each transaction of a relay takes that has no time left, and what it sends."""
    hand = await _hand(pg)
    hand.relay = OutboxRelay(
        pg, hand.settlements, f"@{await pg.outbox.name()}", RelayTerms(frozen_s=15.0)
    )
    taken: list[int] = []
    send = hand.relay._dispatch.send

    async def send_late(given: Any) -> Any:
        taken.append(len(given.rows))
        return await send(given._replace(until=0.0))

    hand.relay._dispatch.send = send_late  # type: ignore[method-assign]
    return taken, await hand.send()


async def test_it_notes_what_it_has_sent_before_the_server_ends_its_transaction(
    app: Faena,
    still: Postgres,  # noqa: F811
) -> None:
    tasks = _declare_two(app)
    await still.outbox.publish()
    await _enqueue_in_turn(still, tasks)
    taken, sent = await _taken_late(still)
    assert taken == [6, 5, 4, 3, 2, 1], "one call for each transaction, as there is no time"
    assert sent == TURNS
    assert await _view(still) == (0, TURNS, 0)


async def test_it_notes_what_was_refused_in_time_too(
    app: Faena,
    still: Postgres,  # noqa: F811
) -> None:
    tasks = _declare_two(app)
    await still.outbox.publish()
    await tasks[0].enqueue(100, id="one", delay="1h")
    async with still.transaction() as connection:
        await still.outbox.enqueue(connection, tasks[0], 101, id="one")  # of another job
        await still.outbox.enqueue(connection, tasks[1], 102)
    assert await _taken_late(still) == ([2, 1], 1)
    assert await _view(still) == (0, 1, 1)
