"""A worker's private brake: no window holds more claims than it allows."""

from __future__ import annotations

from faena.worker.fetch.pace import Pace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_claims_that_are_being_asked_for_count_until_they_are_answered() -> None:
    pace = Pace(5, 60.0, Clock())
    pace.reserve(3)
    assert pace.room() == 2
    pace.reserve(2)
    assert pace.room() == 0
    pace.settle(3, 1)
    assert pace.room() == 2


def test_claims_leave_the_window_in_time() -> None:
    clock = Clock()
    pace = Pace(2, 60.0, clock)
    pace.reserve(2)
    pace.settle(2, 2)
    assert (pace.room(), pace.wait_s()) == (0, 60.0)
    clock.now = 59.9
    assert pace.room() == 0
    clock.now = 60.0
    assert pace.room() == 2


def test_a_full_reservation_gives_no_instant_to_wait_for() -> None:
    pace = Pace(1, 60.0, Clock())
    pace.reserve(1)
    assert (pace.room(), pace.wait_s()) == (0, float("inf"))


def test_without_a_limit_there_is_always_room() -> None:
    pace = Pace()
    pace.reserve(1000)
    assert pace.room() > 1000
