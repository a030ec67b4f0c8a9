"""A task for a worker: the function, how to call it, and its resolved options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from faena.codec import Codec, codec_for, of_result
from faena.declaring.signature import Signature, read_batch, read_plain
from faena.errors import ConfigError, PayloadError, shown
from faena.job import Job
from faena.options import BatchOptions, QueueOptions, Run, TaskOptions, default_timeout_us
from faena.options.costs import cost_fact
from faena.resilience.upstream import Upstream
from faena.retry import Retry, Terms

if TYPE_CHECKING:
    from faena.declaring.fallback import TaskFallback

RunnerName: TypeAlias = Run | Literal["batch"]


class Unfit(NamedTuple):
    """A result that cannot be stored. The work is done, so this is not a failure."""

    kind: str
    """The type of the returned value."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One registered function with everything needed to run it."""

    name: str
    queue: str
    function: Callable[..., Any]
    run: Run
    """Where the function is called."""
    runner: RunnerName
    """The runner of its jobs: the same as `run`, or the one that collects batches."""
    batch: BatchOptions | None
    """How jobs are collected into batches; None: one call for each job."""
    payload: Codec[Any] | None
    """The codec of one payload; None if the function takes none."""
    result: Codec[Any]
    payload_at: int
    """Position of the payload among the arguments; -1 for none."""
    job_at: int
    """Position of the job; -1 for none."""
    retry: Retry
    priority: int
    timeout_us: int | None
    """None: the default of the job's priority."""
    version: int
    upstreams: tuple[Upstream, ...]
    """What its jobs call, and may only begin when they may."""
    cost: Mapping[str, int]
    """The estimated cost of its jobs, for limits by cost; a job may have its own."""
    payload_limit: int
    max_deliveries: int
    age_step_us: int
    """What one step of priority adds to a job's score."""
    cheaper: Handler | None = None
    """What runs instead when so much of a budget is used up that calls should be frugal."""
    payload_type: Any = Any
    """The annotation of the payload."""
    frugal_priority: int = 0
    """The priority of its jobs while calls should be frugal; 0: unchanged."""
    fallback: TaskFallback | None = None
    """What runs instead when an upstream takes no calls, or attempts are used up."""

    def arguments(self, payload: Any, job: Job | Sequence[Job]) -> tuple[Any, ...]:
        """The arguments in the order of the function's parameters; for a batch, lists."""
        if self.job_at < 0:
            return () if self.payload_at < 0 else (payload,)
        if self.payload_at < 0:
            return (job,)
        return (payload, job) if self.payload_at < self.job_at else (job, payload)

    def encoded(self, value: Any) -> bytes | Unfit:
        """The encoded result, or why it cannot be stored."""
        try:
            result = self.result.encode(value)
        except PayloadError as error:
            return Unfit(_kind_of(value), str(of_result(error)))
        except Exception as error:  # noqa: BLE001 - a model's own serializer may do anything
            return Unfit(_kind_of(value), f"{type(error).__name__}: {error}")
        if len(result) > self.payload_limit:
            most = self.payload_limit
            return Unfit(_kind_of(value), f"result must be at most {most} bytes, got {len(result)}")
        return result

    @property
    def wait_s(self) -> float:
        """How long a job may wait for others."""
        return self.batch.wait_us / 1e6 if self.batch else 0.0

    def timeout_of(self, asked_us: int | None, priority: int) -> int:
        """How long an attempt may run: the job's value, the task's, or the priority's default."""
        return asked_us or self.timeout_us or default_timeout_us(priority)

    def retry_of(self, attempts: int | None, terms: Terms | None) -> Retry:
        """The retry policy of a job: its producer's, or the task's with the producer's attempts."""
        if terms is not None:
            return terms.policy(self.retry.give_up_on)
        return replace(self.retry, attempts=attempts) if attempts else self.retry


def _kind_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def name_of(function: Any) -> str:
    """The default name of a task; refuses values that cannot be a handler."""
    name = getattr(function, "__name__", None)
    if name is None or not callable(function) or isinstance(function, type):
        raise ConfigError(f"a task must be a function, got {shown(function)}", field="task")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(
            f"handler {name} must return its result, got a generator function", field="task"
        )
    return name


def refuse_bare(example: str, given: Any) -> None:
    """Refuse a function given to a decorator that needs options first."""
    if callable(given):
        raise ConfigError(
            f"this decorator must be given its options first, such as {example}, got {shown(given)}"
        )


def make_handler(
    function: Callable[..., Any],
    queue: str,
    task: TaskOptions,
    options: QueueOptions,
    names: Mapping[str, Any],
) -> Handler:
    """Read the function's signature; `names` helps to resolve annotations of local classes."""
    batch = task if isinstance(task, BatchOptions) else None
    signature = (read_batch if batch else read_plain)(function, task.name, names)
    has_payload = signature.payload_at >= 0
    cost_fact(queue, options, task.cost)
    _check_upstreams(task)
    run = _where(function, task)
    handler = Handler(
        name=task.name,
        queue=queue,
        function=function,
        run=run,
        runner="batch" if batch else run,
        batch=batch,
        payload=_codec(task.name, "payload", signature.payload) if has_payload else None,
        result=_codec(task.name, "result", signature.result),
        payload_at=signature.payload_at,
        job_at=signature.job_at,
        retry=_retry(task, options),
        priority=task.priority or options.priority,
        timeout_us=task.timeout_us or options.timeout_us,
        version=task.version,
        upstreams=task.upstreams,
        cost=task.cost,
        payload_limit=options.payload_limit,
        max_deliveries=options.max_deliveries,
        age_step_us=options.age_step_us,
        payload_type=signature.payload,
        frugal_priority=_frugal_priority(task),
    )
    if task.cheaper is None:
        return handler
    return replace(handler, cheaper=_cheaper(handler, signature, task, names))


def _cheaper(
    handler: Handler, signature: Signature, task: TaskOptions, names: Mapping[str, Any]
) -> Handler:
    """The same handler with the function that runs while budgets are short."""
    function = task.cheaper
    if handler.runner != "async" or not any(one.is_priced for one in handler.upstreams):
        wanted = "be left out, unless the task is an async def that names an upstream with prices"
    elif not inspect.iscoroutinefunction(function):
        wanted = "be an async def"
    elif read_plain(function, f"{task.name} as its cheaper one", names) != signature:
        wanted = "take and return the same as the task"
    else:
        return replace(handler, function=function)
    raise ConfigError(
        f"cheaper of task {task.name} must {wanted}, got {shown(function)}",
        field="cheaper",
        value=function,
    )


def _frugal_priority(task: TaskOptions) -> int:
    given = task.frugal_priority
    if given is None or any(one.is_priced for one in task.upstreams):
        return given or 0
    raise ConfigError(
        f"frugal_priority of task {task.name} must be left out, unless the task names an upstream "
        f"with prices, got {given}",
        field="frugal_priority",
        value=given,
    )


def _check_upstreams(task: TaskOptions) -> None:
    names = [one.name for one in task.upstreams if isinstance(one, Upstream)]
    if len(names) < len(task.upstreams) or len(names) > len({*names}):
        raise ConfigError(
            f"upstreams of task {task.name} must be different upstreams of the app, such as "
            f"app.upstream('afip'), got {shown(task.upstreams)}",
            field="upstreams",
            value=task.upstreams,
        )
    if names and isinstance(task, BatchOptions):
        raise ConfigError(
            f"batch {task.name} must not name upstreams, because its jobs share one call: use "
            f"`async with {names[0]}.call():` in its handler",
            field="upstreams",
            value=task.upstreams,
        )


def _retry(task: TaskOptions, options: QueueOptions) -> Retry:
    policy = task.retry or options.retry
    return replace(policy, attempts=task.attempts) if task.attempts else policy


def _codec(task: str, what: str, annotation: Any) -> Codec[Any]:
    try:
        return codec_for(annotation)
    except ConfigError as error:
        words = str(error).replace("payload type", f"{what} type")
        raise ConfigError(
            f"{what} of task {task} cannot be stored: {words}", field=error.field, value=error.value
        ) from None


def _where(function: Callable[..., Any], task: TaskOptions) -> Run:
    is_async = inspect.iscoroutinefunction(function)
    if task.run is None:
        return "async" if is_async else "thread"
    if is_async != (task.run == "async"):
        kind = "an async def" if is_async else "a def"
        raise ConfigError(
            f"run must fit the handler of task {task.name}, which is {kind}, got {shown(task.run)}",
            field="run",
            value=task.run,
        )
    if task.run == "process" and not _is_findable(function):
        raise ConfigError(
            f"handler of process task {task.name} must be a top-level function of its module, so "
            f"that a child process can import it, got {function.__qualname__}",
            field="run",
            value=task.run,
        )
    return task.run


def _is_findable(function: Callable[..., Any]) -> bool:
    return not inspect.ismethod(function) and "<" not in function.__qualname__
