"""The slots of a worker: no more than there are, by priority, and nobody starves."""

from __future__ import annotations

from collections import Counter

import pytest

from faena.worker.fetch.slots import Slots


class Queues:
    """Queues with endless work that ask whenever they are told of room, one job at a time."""

    def __init__(self, total: int | None = None, **priorities: int) -> None:
        self.slots = Slots(total)
        self.running: list[str] = []
        self.served: Counter[str] = Counter()
        self._told: list[str] = []
        for name, priority in priorities.items():
            self.add(name, 10, priority)

    def add(self, name: str, concurrency: int, priority: int, pool: str | None = None) -> None:
        self.slots.add(name, concurrency, priority, lambda: self._told.append(name), pool=pool)
        self.slots.want(name, has_ready_jobs=True)

    def hear(self) -> None:
        while self._told:
            self.ask(self._told.pop(0))

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

    def end(self, name: str) -> None:
        """End one job of a queue, which is then the first to ask."""
        self.running.remove(name)
        self.slots.give(name)
        self.ask(name)
        self.hear()


def shards(number: int, concurrency: int, total: int | None = None) -> Queues:
    """A queue in several shards, all of which have endless work."""
    queues = Queues(total)
    for name in "abcdefgh"[:number]:
        queues.add(name, concurrency, 10, "pool")
    return queues


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
    queues.slots.want("second", has_ready_jobs=False)
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
    queues.slots.want("idle", has_ready_jobs=False)
    queues.ask("busy")
    for _ in range(100):
        queues.end_first()
    queues.slots.want("idle", has_ready_jobs=True)
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


def test_shards_of_a_pool_share_its_limit_evenly_while_they_have_jobs() -> None:
    queues = shards(2, 10)
    assert [queues.ask(name) for name in "ab"] == [5, 5]
    for name in "aaabbaab":
        queues.end(name)
    assert Counter(queues.running) == {"a": 5, "b": 5}


def test_a_shard_has_the_whole_pool_while_the_others_want_nothing() -> None:
    queues = shards(3, 10)
    for name in "bc":
        queues.slots.want(name, has_ready_jobs=False)
    assert queues.ask("a") == 10
    assert (queues.slots.free("b"), queues.slots.own("b")) == (0, 10)


def test_a_shard_that_held_the_whole_pool_makes_room_for_one_that_gets_jobs() -> None:
    queues = shards(2, 10)
    queues.slots.want("b", has_ready_jobs=False)
    assert (queues.ask("a"), queues.ask("b")) == (10, 0)
    queues.slots.want("b", has_ready_jobs=True)
    for _ in range(5):
        queues.end("a")
    assert Counter(queues.running) == {"a": 5, "b": 5}


def test_what_was_left_for_a_shard_is_offered_again_once_it_wants_nothing() -> None:
    queues = shards(2, 10)
    assert queues.ask("a") == 5
    queues.slots.want("b", has_ready_jobs=False)
    queues.hear()
    assert Counter(queues.running) == {"a": 10}


def test_slots_that_do_not_divide_go_round() -> None:
    queues = shards(3, 5)
    assert [queues.ask(name) for name in "abc"] == [2, 2, 1]
    for _ in range(3000):
        queues.end(queues.running[0])
        assert max(Counter(queues.running).values()) == 2
    assert all(950 <= queues.served[name] <= 1050 for name in "abc")


@pytest.mark.parametrize("total", [None, 2])
def test_shards_take_turns_where_their_pool_has_fewer_slots(total: int | None) -> None:
    queues = shards(6, 2, total)
    for name in "abcdef":
        queues.ask(name)
    for _ in range(600):
        queues.end(queues.running[0])
    assert len(queues.running) == 2
    assert all(95 <= queues.served[name] <= 105 for name in "abcdef")


def test_a_queue_gets_no_more_of_the_process_by_having_more_shards() -> None:
    queues = shards(4, 10, total=1)
    queues.add("other", 10, 10)
    for name in ("other", *"abcd"):
        queues.ask(name)
    for _ in range(800):
        queues.end_first()
    assert 380 <= queues.served["other"] <= 420
    assert all(90 <= queues.served[name] <= 110 for name in "abcd")


def test_pools_do_not_take_from_each_other() -> None:
    queues = shards(2, 4)
    queues.add("own", 4, 10)
    assert [queues.ask(name) for name in ("a", "b", "own")] == [2, 2, 4]
    assert queues.slots.most == 8


def test_a_shard_that_is_gone_leaves_its_part_to_the_others() -> None:
    queues = shards(2, 10)
    assert queues.ask("a") == 5
    queues.slots.remove("b")
    queues.hear()
    assert Counter(queues.running) == {"a": 10}


def test_a_shard_that_is_gone_holds_its_slots_until_its_jobs_have_ended() -> None:
    queues = shards(2, 4)
    assert [queues.ask(name) for name in "ab"] == [2, 2]
    queues.slots.remove("b")
    queues.hear()
    assert queues.slots.free("a") == 0
    queues.slots.give("b")
    queues.slots.add("b", 4, 10, lambda: None, pool="pool")
    assert (queues.slots.free("a"), queues.slots.used("b")) == (1, 1)
    queues.slots.remove("b")
    queues.slots.give("b")
    queues.hear()
    assert Counter(queues.running)["a"] == 4


def test_a_pool_ends_with_its_last_shard() -> None:
    slots = Slots()
    slots.add("a", 3, 10, lambda: None, pool="pool")
    slots.remove("a")
    assert slots.most == 0
