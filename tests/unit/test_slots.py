"""The slots of a worker: no more than there are, by priority, and nobody starves."""

from __future__ import annotations

from collections import Counter

from faena.worker.slots import Slots


class Queues:
    """Queues with endless work that ask whenever they are told of room, one job at a time."""

    def __init__(self, total: int, **priorities: int) -> None:
        self.slots = Slots(total)
        self.running: list[str] = []
        self.served: Counter[str] = Counter()
        self._told: list[str] = []
        for name, priority in priorities.items():
            self.slots.add(name, 10, priority, lambda name=name: self._told.append(name))
            self.slots.want(name, is_hungry=True)

    def ask(self, name: str, most: int = 10) -> int:
        granted = self.slots.take(name, most)
        self.running += [name] * granted
        self.served[name] += granted
        return granted

    def end_first(self) -> None:
        ended = self.running.pop(0)
        self.slots.give(ended)
        while self._told:
            self.ask(self._told.pop())
        self.ask(ended)


def test_a_queue_alone_gets_what_it_asks_for_up_to_its_concurrency() -> None:
    slots = Slots()
    slots.add("a", 5, 10, lambda: None)
    assert slots.take("a", 3) == 3
    assert slots.take("a", 3) == 2
    assert (slots.free("a"), slots.used("a")) == (0, 5)


def test_a_slot_is_left_for_a_queue_that_wants_work_and_runs_nothing() -> None:
    queues = Queues(4, first=10, second=10)
    assert queues.ask("first", 1) == 1
    assert queues.ask("first") == 2
    assert queues.ask("second") == 1


def test_no_slot_is_left_for_a_queue_without_work() -> None:
    queues = Queues(4, first=10, second=10)
    queues.slots.want("second", is_hungry=False)
    assert queues.ask("first") == 4


def test_queues_take_turns_where_there_are_fewer_slots_than_queues() -> None:
    queues = Queues(2, **dict.fromkeys("abcdef", 10))
    for name in "abcdef":
        queues.ask(name)
    for _ in range(600):
        queues.end_first()
    assert len(queues.running) == 2
    assert all(95 <= queues.served[name] <= 105 for name in "abcdef")


def test_turns_are_in_proportion_to_priority_and_the_last_never_starves() -> None:
    queues = Queues(1, critical=1, normal=10, bulk=50)
    for name in ("bulk", "normal", "critical"):
        queues.ask(name)
    for _ in range(5600):
        queues.end_first()
    assert 4900 <= queues.served["critical"] <= 5100
    assert 480 <= queues.served["normal"] <= 520
    assert 95 <= queues.served["bulk"] <= 105


def test_a_queue_that_idled_has_saved_up_no_turns() -> None:
    queues = Queues(1, busy=10, idle=10)
    queues.slots.want("idle", is_hungry=False)
    queues.ask("busy")
    for _ in range(100):
        queues.end_first()
    queues.slots.want("idle", is_hungry=True)
    queues.ask("idle")
    for _ in range(20):
        queues.end_first()
    assert 9 <= queues.served["idle"] <= 12


def test_slots_that_were_not_used_cost_no_turn() -> None:
    queues = Queues(1, unlucky=10, other=10)
    for _ in range(50):
        assert queues.slots.take("unlucky", 1) == 1
        queues.slots.give_back("unlucky", 1)
    queues.ask("unlucky", 1)
    queues.ask("other", 1)
    for _ in range(20):
        queues.end_first()
    assert abs(queues.served["unlucky"] - queues.served["other"]) <= 1


def test_whoever_was_refused_is_told_once_there_is_room() -> None:
    told: list[str] = []
    slots = Slots(1)
    slots.add("a", 1, 10, lambda: told.append("a"))
    slots.add("b", 1, 10, lambda: told.append("b"))
    assert slots.take("a", 1) == 1
    assert slots.take("b", 1) == 0
    slots.give("a")
    slots.give("b", 0)
    assert told == ["b"]
