"""The world that `./dev bench web` looks at: queues, tenants, jobs in any state, a day of history.

A little of everything comes by the public API. The mass of jobs is sealed once for each tenant and
goes to the engine directly, and the day before now is lived through with a clock put back.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from faena import Budget, Faena, Limit, Price, Retain, Retry
from faena.engine import Engine
from faena.engine.scripts import Claim, Settlement, Turn
from faena.engine.settings import declaration
from faena.options import EnqueueOptions
from faena.outcomes import Buried, Completed, DeathNote, ErrorRecord, Outcome, Retried
from faena.producing.batcher import CallIds
from faena.producing.sealing import Frame
from faena.queue import Queue
from faena.tenancy.lanes import lane_facts

FIRST = "queue-000"
"""The queue of all tenants, with two fifths of the jobs."""
WORKERS = 20
_SERVED = 5
"""Queues of one worker."""
_STEPS = 48
_STEP_US = 30 * 60 * 1_000_000
_HELD_US = 24 * 3600 * 1_000_000
_SERVED_BY = "4711 1.0.0 faena_0 box-{}"
_ERRORS = ("Timeout", "ConnectionRefused", "InvalidInvoice", "QuotaExceeded", "KeyError")


class Size(NamedTuple):
    """How large it is."""

    queues: int
    jobs: int
    tenants: int


class Order(msgspec.Struct):
    """A job's payload."""

    number: int = 0
    fails: bool = False
    password: str = "hunter2"
    text: str = "x" * 120


class World:
    """It, and what is in it by name."""

    def __init__(self, app: Faena, size: Size) -> None:
        self.app, self.size = app, size
        self.parts: dict[str, str] = {}
        """Part of an address → something that is there."""
        self._calls = CallIds()
        self._caller = self._calls()
        self._tasks: dict[str, Any] = {}

    async def build(self) -> None:
        """All of it."""
        self._queue(0)
        await self._everything()
        for number in range(1, self.size.queues):
            self._queue(number)
        engine = await self._engine(None)
        for name in self.app.queues:
            await engine.declare(name)
        await self._fill()
        await self._live()
        await self.be_served()

    def _queue(self, number: int) -> None:
        options: dict[str, Any] = {"limits": [Limit("100000/min")]} if number % 3 == 0 else {}
        if number % 4 == 0:
            options |= {"fair": True, "tenant_limits": [Limit("1000/min")]}
        queue = self.app.queue(
            f"queue-{number:03d}",
            retry=Retry.fixed("1s", attempts=1),
            retain=Retain(completed="1d", completed_count=5_000),
            **options,
        )

        @queue.task(name=f"work-{number:03d}")
        async def work(order: Order) -> dict[str, int]:
            if order.fails:
                raise ValueError("the printer is on fire")
            return {"number": order.number}

        self._tasks[queue.name] = work

    async def _everything(self) -> None:
        """One of what only the public API makes."""
        app, work = self.app, self._tasks[FIRST]
        for number in range(20):
            app.schedule(f"nightly-{number:02d}", work, Order(number), every="6h")
        for name in ("maps", "mail", "bank"):
            app.upstream(
                name,
                limits=["1000/min"],
                prices=[Price("call", "0.001 USD")],
                budgets=[Budget("100 USD", per="month")],
            )
        app.feature("invoicing", upstreams=[app.upstreams["bank"]])
        await app.schedules.declare()
        done = await work.enqueue(Order(), tenant=_tenant(0))
        dead = await work.enqueue(Order(fails=True), tenant=_tenant(1))
        flow = await app.chain(work.draft(Order()), work.draft(Order())).start()
        async with app.group(on_complete=work.draft(Order())) as group:
            await group.enqueue_many(work, [Order()])
        await app.run_worker(until_empty=True)
        redrive = await app.dead_letters.start_redrive(FIRST, error="Nothing")
        self.parts = {
            "queue": FIRST,
            "job": done.id,
            "dead": dead.id,
            "tenant": _tenant(0),
            "flow": flow.id.partition("/")[2],
            "group": group.id.partition("/")[2],
            "redrive": redrive,
            "schedule": "nightly-00",
            "upstream": "bank",
            "feature": "invoicing",
            "worker": "worker-00",
        }

    # -- the mass of jobs -------------------------------------------------------------------------

    async def _engine(self, clock: Any) -> Engine:
        """The app's own, or one with a clock."""
        found = (await self.app.runtime()).engine
        if clock is not None:
            found = Engine(found.wire, namespace=found.namespace, clock=clock)
        for name, queue in self.app.queues.items():
            found.know(name, declaration(queue.options))
        return found

    async def _fill(self) -> None:
        """Ready jobs of all queues; one in ten is delayed."""
        engine = await self._engine(lambda: time.time_ns() // 1000 - _HELD_US)
        most = self.size.jobs * 2 // 5
        others = max(1, self.size.queues - 1)
        for number, queue in enumerate(self.app.queues.values()):
            tenants = self.size.tenants if queue.name == FIRST else self.size.tenants // 100
            jobs = most if queue.name == FIRST else (self.size.jobs - most) // others
            await self._fill_queue(engine, queue, jobs, max(1, tenants))
            if number % 20 == 0:
                print(f"filling: {queue.name}", file=sys.stderr)

    async def _fill_queue(self, engine: Engine, queue: Queue, jobs: int, tenants: int) -> None:
        specs = [self._sealed(queue, number, None) for number in range(tenants)]
        later = [self._sealed(queue, number, "30d") for number in range(min(tenants, 100))]
        for start in range(0, jobs, 300):
            kind = later if start // 300 % 10 == 9 else specs
            ids = self.app.new_ids(min(300, jobs - start))
            pairs = [(one, kind[(start + i) % len(kind)]) for i, one in enumerate(ids)]
            await engine.enqueue(queue.name, self._caller, self._calls(), pairs)

    def _sealed(self, queue: Queue, number: int, delay: str | None) -> bytes:
        task = self._tasks[queue.name]
        given: Mapping[str, Any] = {} if delay is None else {"delay": delay}
        options = EnqueueOptions(tenant=_tenant(number), **given)
        spec = task.spec(task.draft(Order(number), tenant=options.tenant))
        place = lane_facts(queue.name, queue.options, options.tenant, None)
        frame = Frame(spec, options, task.handler.priority, place)
        return frame.fill("", msgspec.json.encode(Order(number)))[1]

    # -- the day before now -----------------------------------------------------------------------

    async def _live(self) -> None:
        """Jobs start and end in every half hour of a day, and at last some run on."""
        print("living through a day", file=sys.stderr)
        now = time.time_ns() // 1000
        for step in range(_STEPS, -1, -1):
            at = now - step * _STEP_US
            engine = await self._engine(lambda at=at: at)
            for number, name in enumerate(self.app.queues):
                if name == FIRST or step % 12 == number % 12 or step < 2:
                    await self._work(engine, name, 100 if name == FIRST else 20, is_last=step == 0)

    async def _work(self, engine: Engine, queue: str, jobs: int, *, is_last: bool) -> None:
        worker, task = f"worker-{int(queue[-3:]) % WORKERS:02d}", f"work-{queue[-3:]}"
        turn = Turn(self._calls(), jobs, least_lease_us=_HELD_US)
        claimed = (await engine.exchange(queue, worker, worker, turn)).claimed
        if is_last:
            return
        settled = [
            Settlement(one.id, one.lease, _end(one, i, task)) for i, one in enumerate(claimed)
        ]
        times = [len(settled) * 40_000, 30, len(settled) // 2, 45, len(settled) - len(settled) // 2]
        measured = {f"task:{task}": [len(settled), len(settled), 0, 0, times, times, times]}
        turn = Turn(self._calls(), 0, settled, measured)
        await engine.exchange(queue, worker, worker, turn)

    async def be_served(self) -> None:
        """Every worker calls, so that none has gone silent."""
        engine = await self._engine(None)
        for number, name in enumerate(self.app.queues):
            for more in range(1 if number else _SERVED):
                at = (number + more) % WORKERS
                turn = Turn(self._calls(), 0, is_sweep=True, about=_SERVED_BY.format(at))
                await engine.exchange(name, f"worker-{at:02d}", f"worker-{at:02d}", turn)


def _tenant(number: int) -> str:
    return f"tenant-{number:06d}"


def _end(claim: Claim, number: int, task: str) -> Outcome:
    """One in ten dies, one in ten comes again."""
    if number % 10 > 1:
        return Completed(b'{"number":1}')
    name = _ERRORS[number // 10 % len(_ERRORS)]
    error = ErrorRecord(name=name, message="it broke", stack="line\n" * 30)
    if number % 10:
        return Retried(_STEP_US, error)
    note = DeathNote(task, _tenant(number), name, "", name.lower(), "it broke", 0, 0)
    return Buried(error, note=note)
