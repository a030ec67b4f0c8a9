"""What a program knows of the shards of its queues, and that nothing of it outlives the app."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from faena import Faena
from faena.engine.calls.transfer import Known
from faena.engine.envelope import NewJob, seal
from faena.errors import ShardsChanged, StoreError, StoreRejected, StoreUnavailable
from faena.options import Durability, QueueOptions
from faena.producing.batcher import Batcher, CallIds, Sent
from faena.producing.sender import Sender, _answer
from faena.sharding import router as routing
from faena.sharding.consistent_read import Sight, read_steadily
from faena.sharding.router import Routers
from faena.sharding.routing_table import Change, Table, index_of
from tests._support.eventually import PATIENCE_S
from tests._support.rig import SECOND, Rig


def _run_now(coroutine: Coroutine[Any, Any, None]) -> None:
    """In this very turn of the loop: it has nothing to wait for."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


async def test_who_hears_of_a_look_after_the_end_begins_no_work(rig: Rig) -> None:
    moving = ("epoch", 2, "shards", 2, "before", 1, "phase", "moving", "change", "shards 2")
    await rig.engine.command("HSET", "q", "shards", *moving)
    routers = Routers(rig.engine, {"q": QueueOptions(fair=True)})
    serving = asyncio.create_task(routers.of("q").serving())
    await asyncio.sleep(0)
    (look,) = (task for task in asyncio.all_tasks() if "Router._look" in repr(task))
    look.add_done_callback(lambda _: _run_now(routers.close()))  # before the waiter is told
    assert [shard.name for shard in await serving] == ["q", "q/1"]
    left = [task for task in asyncio.all_tasks() if "Router._work" in repr(task)]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert left == []


async def test_who_waits_for_a_change_that_was_abandoned_is_told_so(app: Faena) -> None:
    @app.queue("q", fair=True).task
    async def work() -> None: ...

    runtime = await app.runtime()
    await runtime.engine.declare("q")
    change = Change(shards=2)
    assert await runtime.routers.of("q").relocation.begin(change, Table(), "ana")
    await runtime.engine.command("SET", "q", "relocator", "killed", "PX", 600_000)
    with pytest.raises(StoreUnavailable) as late:
        await work.enqueue(tenant="acme", patience="50ms")
    assert re.fullmatch(
        r"the shards of queue q are being changed \(2 shards\), and the change did not finish "
        r"within \d+\.\d s: the program that began it may have died; the next call continues it "
        r"about 10 s after that: try again then, and see `faena shards q`",
        str(late.value),
    )
    assert not late.value.is_outcome_unknown
    await runtime.engine.command("DEL", "q", "relocator")
    assert (await work.enqueue(tenant="acme")).status == "created"
    assert (await runtime.routers.of("q").settled(PATIENCE_S)).shards == 2


async def test_jobs_that_were_routed_by_different_tables_do_not_share_a_call(rig: Rig) -> None:
    await rig.declare()
    await rig.edit(epoch=2)
    batcher = Batcher(rig.engine, "q", CallIds(), Durability())
    jobs = [NewJob(job, seal(10, {}, b"{}"), {}) for job in "abc"]
    first, new, old = await asyncio.gather(
        *(batcher.send([job], epoch) for job, epoch in zip(jobs, (2, 2, 1), strict=True)),
        return_exceptions=True,
    )
    assert isinstance(first, Sent)
    assert isinstance(new, Sent)
    assert isinstance(old, ShardsChanged)
    assert set((await rig.dump())["specs"]) == {"a", "b"}


async def test_a_durable_job_that_is_refused_by_its_shard_does_not_wait(rig: Rig) -> None:
    await rig.declare()
    await rig.edit(epoch=2)
    forever = ("WAIT", 1, 600_000)  # for a replica that there is not
    call = rig.queue, "producer", rig.next_call(), [("a", seal(10, {}, b"{}"))], forever
    with pytest.raises(ShardsChanged):
        await rig.engine.enqueue_durably(*call, epoch=1)
    assert "specs" not in await rig.dump()


async def test_a_list_is_as_durable_as_it_is_at_its_weakest_shard(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_to = Sender._send_to

    async def half(self: Sender, shard: str, jobs: Any, durability: Durability, epoch: int) -> Sent:
        answers, plain = await send_to(self, shard, jobs, Durability(), epoch)
        return Sent(answers, plain if shard == "q" else durability)

    monkeypatch.setattr(Sender, "_send_to", half)

    @app.queue("q", shards=2).task
    async def work() -> None: ...

    at = {index_of(f"@{tenant}", 2): tenant for tenant in "abcdefgh"}
    drafts = [work.draft(tenant=at[shard]) for shard in (0, 1)]
    receipts = await work.enqueue_many(drafts, durability="fsynced")
    assert [one.durability for one in receipts] == ["memory", "memory"]


class Failing:
    """Two shards, and the errors that each of them raises before it takes jobs in."""

    def __init__(
        self, app: Faena, monkeypatch: pytest.MonkeyPatch, **errors: list[StoreError]
    ) -> None:
        self._send_to = Sender._send_to
        self._errors = {"q": errors["first"], "q/1": errors["second"]}
        self.asked: list[str] = []

        async def send(sender: Sender, shard: str, *rest: Any) -> Sent:
            return await self._send(sender, shard, *rest)

        monkeypatch.setattr(Sender, "_send_to", send)

        @app.queue("q", shards=2).task
        async def work() -> None: ...

        self._work = work

    async def _send(self, sender: Sender, shard: str, *rest: Any) -> Sent:
        self.asked.append(shard)
        if self._errors[shard]:
            raise self._errors[shard].pop(0)
        return await self._send_to(sender, shard, *rest)

    async def enqueue(self) -> list[str]:
        """A job for each shard; what became of them."""
        at = {index_of(f"@{tenant}", 2): tenant for tenant in "abcdefgh"}
        drafts = [self._work.draft(tenant=at[shard]) for shard in (0, 1)]
        return [one.status for one in await self._work.enqueue_many(drafts)]


async def test_only_what_a_shard_has_refused_is_sent_again(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    sought: list[list[int]] = []

    async def seek(_: Sender, queue: str, table: Table, jobs: Any, left: list[int]) -> Any:
        sought.append([*left])
        return {}

    monkeypatch.setattr(Sender, "_ask_former_shards", seek)
    failing = Failing(app, monkeypatch, first=[], second=[ShardsChanged("others are there")])
    assert await failing.enqueue() == ["created", "created"]
    assert failing.asked == ["q", "q/1", "q/1"]
    assert sought == [[0, 1], [1]]  # the shard that has just taken a job in would know it


async def test_a_job_whose_claim_replaces_others_is_known_by_its_own_id(rig: Rig) -> None:
    await rig.add("a", lane="@a", unique="u", mode="debounce", ttl=60 * SECOND)
    sender = Sender(rig.engine, Routers(rig.engine, {}))
    job = NewJob("a", b"", {"lane": "@a", "unique": "u", "mode": "debounce"})
    known = await sender._known_at("q", "q/1", job)  # it does not wait for itself
    assert known is not None
    assert known.id == "a"


@pytest.mark.parametrize(("digest", "code"), [("d", "DUPLICATE"), ("other", "CONFLICT")])
def test_a_job_that_was_sealed_anew_is_known_by_its_digest(digest: str, code: str) -> None:
    known = Known("a", "ready", seal(10, {"digest": "d"}, b'{"at":1}'))
    job = NewJob("a", seal(10, {"digest": digest}, b'{"at":2}'), {"digest": digest})
    assert _answer(job, known).code == code


async def test_an_error_of_one_shard_counts_more_than_the_refusal_of_another(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal, error = ShardsChanged("others are there"), StoreRejected("no room")
    failing = Failing(app, monkeypatch, first=[refusal], second=[error])
    with pytest.raises(StoreRejected):
        await failing.enqueue()
    assert failing.asked == ["q", "q/1"]


class Refusing:
    """What shards refuse so often, each time after twenty seconds of a clock of its own."""

    def __init__(self, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._times = times
        self._now = 0.0
        self.epochs: list[int] = []
        self.pauses: list[float] = []
        monkeypatch.setattr(routing, "time", SimpleNamespace(monotonic=lambda: self._now))
        monkeypatch.setattr(routing, "asyncio", SimpleNamespace(sleep=self._pause))

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def __call__(self, table: Table) -> str:
        self.epochs.append(table.epoch)
        self._now += 20
        if len(self.epochs) <= self._times:
            raise ShardsChanged("others are there")
        return "done"


async def test_shards_that_refuse_one_table_are_asked_again_for_half_a_minute(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    router = Routers(rig.engine, {"q": QueueOptions(fair=True)}).of("q")
    once = Refusing(1, monkeypatch)
    assert await router.on_current_shards(once) == "done"
    assert once.epochs == [0, 0]
    assert len(once.pauses) == 1  # nothing is new, so it is not asked at once
    always = Refusing(5, monkeypatch)
    with pytest.raises(ShardsChanged):
        await router.on_current_shards(always)
    assert always.epochs == [0, 0]


async def test_shards_that_change_again_and_again_are_followed_for_longer(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    router = Routers(rig.engine, {"q": QueueOptions(fair=True)}).of("q")
    refusing = Refusing(5, monkeypatch)

    async def move(table: Table) -> str:
        await rig.engine.command("HSET", "q", "shards", "epoch", table.epoch + 1, "shards", 1)
        return await refusing(table)

    assert await router.on_current_shards(move) == "done"
    assert refusing.epochs == [0, 1, 2, 3, 4, 5]
    assert refusing.pauses == []


async def test_who_waits_for_a_change_that_another_has_left_carries_on_with_it(rig: Rig) -> None:
    await rig.declare()
    routers = Routers(rig.engine, {"q": QueueOptions(fair=True)})
    router = routers.of("q")
    assert await router.relocation.begin(Change(shards=2), await router.look(), "ops")
    table = await router.settled(PATIENCE_S)
    await routers.close()
    assert await rig.engine.obliterate("q/1", 1000, force=True) == "DONE"
    assert (table.shards, table.phase) == (2, "")


async def test_a_job_is_known_by_its_id_while_a_queue_goes_back_to_one_shard(app: Faena) -> None:
    @app.queue("q", shards=2).task
    async def work() -> None: ...

    tenant = next(name for name in "abcdefgh" if index_of(f"@{name}", 2) == 1)
    await work.enqueue(tenant=tenant, id="one")
    router = (await app.runtime()).routers.of("q")
    grown = await router.settled(PATIENCE_S)
    assert await router.relocation.begin(Change(shards=1), grown, "ops")
    assert await router.relocation.work(until_published=True)
    table = await router.look()
    assert (table.is_single, table.phase) == (True, "moving")
    assert (await work.enqueue(tenant=tenant, id="one")).status == "duplicate"
    assert not (await router.settled(PATIENCE_S)).phase


async def test_whoever_reads_while_shards_change_reads_again(rig: Rig) -> None:
    router = Routers(rig.engine, {"q": QueueOptions(fair=True)}).of("q")
    epochs: list[int] = []

    async def read(sights: list[Sight]) -> int:
        epochs.append(sights[0].epoch)
        await rig.engine.command("HSET", "q", "shards", "epoch", 1, "shards", 1)
        return len(epochs)

    assert await read_steadily([router], read) == 2
    assert epochs == [0, 1]
