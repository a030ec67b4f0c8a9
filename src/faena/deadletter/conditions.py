"""What is told of dead letters: too many new ones, too many, too old ones. Both the events of a
queue and the alerts of the app are judged by this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from faena.engine.calls.deadletter import Numbers, Position
from faena.options import DeadLetters
from faena.values.duration import describe


class Condition(NamedTuple):
    """One of them; it is true where the value is more than the bound."""

    value: int
    bound: int
    detail: str
    """The value of the event."""
    text: str
    """The value in words."""

    @property
    def is_true(self) -> bool:
        """Whether it is told."""
        return self.value > self.bound


def conditions(
    options: DeadLetters, by_queue: Mapping[str, Sequence[Numbers]]
) -> dict[str, Condition]:
    """Those that are on, by name."""
    found: dict[str, Condition] = {}
    parts = [part for some in by_queue.values() for part in some]
    if options.alert_new is not None:
        new = sum(part.new for part in parts)
        told = f"{new} jobs died within an hour"
        found["dead_surge"] = Condition(new, options.alert_new, str(new), told)
    if options.alert_waiting is not None:
        many = sum(part.statuses["pending"] for part in parts)
        told = f"{many} dead jobs wait for somebody"
        found["dead_many"] = Condition(many, options.alert_waiting, str(many), told)
    if options.alert_age_us is not None:
        queue, oldest = _oldest(by_queue)
        age = max(0, parts[0].now - int(float(oldest.score))) if oldest else 0
        detail = f"{queue}/{oldest.id}" if oldest else ""
        told = f"dead job {detail} waits for {describe(age // 1_000_000 * 1_000_000)}"
        told = told if oldest else "no dead job waits"
        found["dead_old"] = Condition(age, options.alert_age_us, detail, told)
    return found


def _oldest(by_queue: Mapping[str, Sequence[Numbers]]) -> tuple[str, Position | None]:
    """The oldest pending job, and its queue."""
    found = [
        (queue, part.oldest) for queue, some in by_queue.items() for part in some if part.oldest
    ]
    return min(found, key=lambda one: one[1].key(), default=("", None))
