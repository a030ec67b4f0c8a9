"""A handler that blocks the event loop is named, with how long it did."""

from __future__ import annotations

import asyncio

import pytest

from faena.worker.blocked_loop import BlockedLoop, Blocker


class Watched:
    """The loop of the test, which is blocked until the test awaits."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked: list[object] = []
        self.blocked_loop = BlockedLoop(asyncio.get_running_loop(), self._find, lambda: self.now)

    def _find(self, task: object) -> Blocker:
        self.asked.append(task)
        return Blocker("send", "time.sleep (mail.py:7)")

    def look(self, after: float = 0.0) -> None:
        self.now += after
        self.blocked_loop.look()

    async def block(self, seconds: float) -> None:
        self.look()
        self.look(after=seconds)
        await asyncio.sleep(0)
        self.look(after=0.25)


async def test_a_long_block_is_told_with_its_task_and_length(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = Watched()
    await watched.block(1.5)
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "the handler of task send blocked the event loop, and every other job of this process, for"
    )
    assert "in time.sleep (mail.py:7)" in record.getMessage()
    assert watched.asked == [asyncio.current_task()]


async def test_a_short_one_is_nothing_and_the_same_task_is_named_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = Watched()
    await watched.block(0.9)
    assert not caplog.records
    for _ in range(3):
        await watched.block(2)
    assert len(caplog.records) == 1
    watched.now += 60
    await watched.block(2)
    assert len(caplog.records) == 2


async def test_one_that_goes_on_is_told_before_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    watched.look()
    watched.look(after=2)
    assert not caplog.records
    watched.look(after=8)
    assert "for 10.0 s" in caplog.text
