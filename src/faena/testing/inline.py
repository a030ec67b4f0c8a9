"""Runs one attempt without a broker, with a worker's codec, middleware and executor.

Jobs that the handler enqueues go to the broker of its app; inside a harness, to the test's server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from faena.declaring.handler import Handler
from faena.engine.scripts import Claim
from faena.errors import InternalError, JobFailed, PayloadError
from faena.job import Input, Job, Spec
from faena.middleware import Execute, Middleware, wrap_enqueue
from faena.options.costs import check_used
from faena.options.fields import check_is
from faena.outcomes import Completed, Outcome
from faena.producing.receipt import Receipt
from faena.producing.sealing import seal_job
from faena.resilience.money import Money
from faena.resilience.upstream import STAND_IN, Upstream, refuse_foreign
from faena.task import EnqueueFields, Task
from faena.testing.inputs import Counts, Parents, counts_of, parents_of
from faena.testing.report import Ran, ending_of
from faena.testing.upstreams import StandIn
from faena.worker.execute.admission import Admission
from faena.worker.execute.attempt_state import Attempt
from faena.worker.execute.batch import Batch, Runner
from faena.worker.execute.executor import Executor
from faena.worker.execute.gatherer import Gatherer
from faena.worker.execute.processes import Processes
from faena.worker.execute.threads import Threads
from faena.worker.execute.traced import Traced

if TYPE_CHECKING:
    from faena.telemetry.tracing.tracing import Tracing

P = TypeVar("P")
R = TypeVar("R")

WORKER = "test"


@overload
async def run_inline(
    task: Task[None, R] | Task[Job, R],
    /,
    *,
    parents: Parents = None,
    group: Counts = None,
    frugal: bool = False,
    refused: Sequence[Upstream] = (),
    **options: Unpack[EnqueueFields],
) -> R: ...
@overload
async def run_inline(
    task: Task[P, R],
    payload: P,
    /,
    *,
    parents: Parents = None,
    group: Counts = None,
    frugal: bool = False,
    refused: Sequence[Upstream] = (),
    **options: Unpack[EnqueueFields],
) -> R: ...
async def run_inline(task: Task[Any, Any], /, *payload: Any, **options: Any) -> Any:
    """Run a handler now and return its result; its exception is raised here.

    Raises PayloadError if the result could not be stored. `parents` is what the nodes before
    it in a flow returned, by name; `group` is how the members of a group ended. Calls to upstreams
    are allowed, but those to `refused` ones; `frugal` says that budgets are nearly used up.
    """
    ran = await attempt(task, *payload, **options)
    if not isinstance(ran.outcome, Completed):
        if ran.raised is not None:
            raise ran.raised
        raise JobFailed(f"{ran}", error=ran.error)
    if ran.outcome.dropped:  # a worker only warns; a test must fail
        raise PayloadError(ran.outcome.dropped, op="result")
    return ran.result


async def attempt(
    task: Task[Any, Any],
    /,
    *payload: Any,
    number: int = 1,
    parents: Parents = None,
    group: Counts = None,
    frugal: bool = False,
    refused: Sequence[Upstream] = (),
    **options: Unpack[EnqueueFields],
) -> Ran:
    """Run the `number`-th attempt of a job; returns how it ended, whatever the handler raises.

    The options are as in `run_inline`.
    """
    check_is("task", task, Task)
    before = parents_of(parents), counts_of(group)
    (job_id, spec), now = await _sealed(task, payload, options, *before), time.time_ns() // 1000
    notes, witness, gate = _Notebook(), Witness(), StandIn(frugal=frugal, refused=refused)
    refuse_foreign("refused", refused, task.app.name, task.app.upstreams)
    claim = Claim(job_id, "inline", spec, 0.0, number - 1, 0, 0, enqueued_at=now)
    before_it = STAND_IN.set(gate)
    try:
        outcome = await _outcome(task, claim, notes, witness, gate)
    finally:
        STAND_IN.reset(before_it)
    await gate.flush()
    return Ran(
        queue=task.queue,
        task=task.name,
        id=job_id,
        number=number,
        ending=ending_of(outcome),
        outcome=outcome,
        result=result_of(task.handler, outcome),
        raised=witness.raised.get(job_id),
        spent=_spent(task, gate),
        **notes.told(),
    )


async def _outcome(
    task: Task[Any, Any], claim: Claim, notes: _Notebook, witness: Witness, gate: StandIn
) -> Outcome:
    """Run a claimed job with an executor of its own."""
    ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def done(_claim: Claim, outcome: Outcome | None, _attempt: Attempt | None) -> None:
        if outcome is None:
            raise InternalError("an attempt without a lease cannot lose it")
        ended.set_result(outcome)

    with Runners(tracing=task.app.tracing) as runners:
        executor = Executor(
            task.queue,
            {task.name: task.handler},
            runners=runners.by_name,
            batches=lambda executor: runners.gatherer.runner(executor, task.queue),
            notes=notes,
            middleware=(witness, *task.app.middleware),
            worker=WORKER,
            on_done=done,
            on_free=lambda: None,
            dead_letters=task.app.dead_letter_options,
            admission=Admission(gate, {task.name: task.handler}, lambda _granted, _refused: None),
            traced=runners.traced,
        )
        executor.start([claim], claim.enqueued_at, claim.enqueued_at)
        return await ended


def _spent(task: Task[Any, Any], gate: StandIn) -> dict[str, Money]:
    known = task.app.upstreams
    prices = {name: known[name].options.price_list for name in gate.spent if name in known}
    return {name: Money(gate.spent[name], one.currency) for name, one in prices.items() if one}


class Runners:
    """Threads and processes for handlers, closed at the end of the `with` block.

    No timers are used: a job of a batch does not wait for others, or `on_waiting` decides.
    """

    def __init__(
        self,
        threads: int = 1,
        on_waiting: Callable[[Batch], None] | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.traced = Traced(tracing) if tracing else None
        self._threads = Threads(threads)
        self._processes = Processes(asyncio.get_running_loop())
        self.by_name: dict[str, Runner] = {"thread": self._threads, "process": self._processes}
        waiting = on_waiting or self._wait_for_none
        self.gatherer = Gatherer(self.by_name, waiting, self.traced)

    def _wait_for_none(self, batch: Batch) -> None:
        self.gatherer.begin(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.close()
        self._processes.close()


class Witness(Middleware):
    """The outermost middleware of a test: records the exception of each attempt."""

    def __init__(self) -> None:
        self.raised: dict[str, BaseException] = {}

    async def execute(self, job: Job, call_next: Execute) -> Any:
        """Let an exception pass, but keep it."""
        try:
            return await call_next(job)
        except BaseException as error:
            self.raised[job.id] = error
            raise


class _Notebook:
    """Keeps progress, log lines and costs, which have no broker to go to."""

    def __init__(self) -> None:
        self.latest: Any = None
        self.lines: list[str] = []
        self.used: dict[str, int] = {}

    def told(self) -> dict[str, Any]:
        return {"progress": self.latest, "log": tuple(self.lines), "used": self.used}

    def progress(self, job_id: str, value: Any) -> None:  # noqa: ARG002 - one job only
        self.latest = value

    def log(self, job_id: str, line: str) -> None:  # noqa: ARG002 - one job only
        self.lines.append(line)

    def spend(self, job_id: str, used: Mapping[str, int]) -> None:  # noqa: ARG002 - as above
        self.used.update(check_used(used))


def result_of(handler: Handler, outcome: Outcome) -> Any:
    """The result as a waiter gets it: encoded and decoded again."""
    if not isinstance(outcome, Completed) or not outcome.result:
        return None
    return handler.result.decode(outcome.result)


async def _sealed(
    task: Task[Any, Any],
    payload: Sequence[Any],
    options: Mapping[str, Any],
    parents: dict[str, Input],
    group: dict[str, int],
) -> tuple[str, bytes]:
    """The job's id and spec, after all middleware around enqueue."""
    draft = task.draft(*payload, **options)
    job_id = draft.options.id or task.app.new_ids(1)[0]
    sent: list[bytes] = []

    async def send(_queue: str, ready: Spec) -> Any:
        ready.parents, ready.group = parents, group
        priority = draft.options.priority or task.handler.priority
        sent.append(seal_job(job_id, ready, draft.options, priority).spec)
        return _receipt(task, job_id)

    await wrap_enqueue(task.app.middleware, send)(task.queue, task.spec(draft))
    if not sent:
        raise JobFailed(f"a middleware of task {task.name} prevented the enqueue")
    return job_id, sent[0]


def _receipt(task: Task[Any, R], job_id: str) -> Receipt[R]:
    return Receipt(id=job_id, durability="memory", task=task)
