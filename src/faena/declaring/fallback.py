"""The fallback of a task, checked when it is declared: the handler that runs instead.

A function runs like the task's own. What hands the job over is a handler as well, which enqueues
another job: its id is made of the job's, so however often it runs, there is one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from faena.codec import codec_for
from faena.codec.fit import unfit
from faena.declaring.handler import Handler, Unfit, make_handler
from faena.declaring.signature import read_plain
from faena.errors import ConfigError, Overloaded, PayloadError, StoreUnavailable, shown
from faena.job import Job
from faena.options import BatchOptions, QueueOptions, TaskOptions
from faena.outcomes import ErrorRecord
from faena.resilience.escalation import (
    NO_ANSWER,
    Escalate,
    Escalation,
    Handed,
    escalation_of,
    handed_id,
)
from faena.resilience.fallback import Fallback, Manual, has_fallback, name_of
from faena.task import Task
from faena.tenancy.lanes import lane_of

_VALID: Final = "a function, a task, Escalate(task), Manual(text) or Fallback(…)"
_PAUSE_S: Final = 1.0
_SAMPLE: Final = Escalation(job_id="1", queue="q", task="t", reason="r")


class ManualNeeded(Exception):
    """The job must be done by hand; the message says how."""

    code = "MANUAL"


class NotHandedOver(Exception):
    """The other queue takes no jobs now."""

    def __init__(self, wait_s: float, reason: str) -> None:
        super().__init__(reason)
        self.wait_us = max(1, round(wait_s * 1e6))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFallback:
    """What runs instead of a handler, and when."""

    terms: Fallback
    name: str
    """In errors and log lines."""
    handler: Handler
    target: Task[Any, Any] | None = None
    """The task that jobs are handed over to, if they are."""
    is_given_all: bool = False
    """Whether its handler takes a `Handed` instead of the payload."""

    @property
    def event(self) -> str:
        """What is told when it was used."""
        return "escalated" if isinstance(self.terms.to, Escalate) else "fell_back"


def handler_with_fallback(
    function: Callable[..., Any],
    queue: str,
    task: TaskOptions,
    options: QueueOptions,
    names: Mapping[str, Any],
) -> Handler:
    """The handler of a task, with what runs instead; see `make_handler`."""
    handler = make_handler(function, queue, task, options, names)
    return replace(handler, fallback=_fallback_of(handler, task, names))


def _fallback_of(
    handler: Handler, options: TaskOptions, names: Mapping[str, Any]
) -> TaskFallback | None:
    given = options.fallback
    if given is None:
        return None
    if isinstance(options, BatchOptions):
        raise _refusal(options, "must not be given, because jobs of a batch share one call")
    terms = given if isinstance(given, Fallback) else Fallback(given)
    match terms.to:
        case Manual():
            instead = _handing(handler, _manual(terms.to))
            return TaskFallback(terms=terms, name="Manual", handler=instead, is_given_all=True)
        case Escalate(to=Task() as target):
            function = _escalating(handler, _checked(handler, options, target), terms.to)
        case Task() as target:
            function = _forwarding(_checked(handler, options, target))
        case _:
            return _of_function(handler, options, terms, names)
    return TaskFallback(
        terms=terms,
        name=f"{target.queue}/{target.name}",
        handler=_handing(handler, function),
        target=target,
        is_given_all=True,
    )


def _of_function(
    handler: Handler, options: TaskOptions, terms: Fallback, names: Mapping[str, Any]
) -> TaskFallback:
    function = terms.to
    if not inspect.isroutine(function):
        raise _refusal(options, f"must be {_VALID}", function)
    if has_fallback(function):
        raise _refusal(options, "must not have a fallback of its own", function)
    signature = read_plain(function, f"{options.name} as its fallback", names)
    if signature.payload_at >= 0 and handler.payload is None:
        raise _refusal(options, "must take no payload, because the task takes none", function)
    run = "async" if inspect.iscoroutinefunction(function) else "thread"
    instead = replace(
        handler,
        function=function,
        run=run,
        runner=run,
        payload_at=signature.payload_at,
        job_at=signature.job_at,
        upstreams=(),
    )
    return TaskFallback(terms=terms, name=name_of(function), handler=instead)


def _checked(handler: Handler, options: TaskOptions, target: Task[Any, Any]) -> Task[Any, Any]:
    """Refuse a task that could hand the job on, or would wait for the same upstream."""
    there = target.handler
    if there.fallback is not None:
        raise _refusal(options, "must not have a fallback of its own", target)
    shared = {one.name for one in handler.upstreams} & {one.name for one in there.upstreams}
    if shared:
        words = f"must not call the same upstream, {', '.join(sorted(shared))}"
        raise _refusal(options, words, target)
    is_escalation = isinstance(options.fallback, Escalate) or (
        isinstance(options.fallback, Fallback) and isinstance(options.fallback.to, Escalate)
    )
    if not is_escalation and there.payload is not None and handler.payload is None:
        raise _refusal(options, "must take no payload, because the task takes none", target)
    has_both = there.payload is not None and handler.payload is not None
    if has_both and not is_escalation:
        why = unfit(handler.payload_type, there.payload_type)
        if why is not None:
            raise _refusal(options, f"must take the task's payload: {why}", target)
    return target


def _handing(handler: Handler, function: Any) -> Handler:
    """A handler that takes a `Handed` and the job."""
    taking = {"payload": None, "payload_at": 0, "job_at": 1}
    return replace(handler, function=function, run="async", runner="async", upstreams=(), **taking)


def _manual(manual: Manual) -> Any:
    async def ask(given: Handed, _job: Job) -> None:
        raise ManualNeeded(f"{manual.text} ({given.reason})")

    return ask


def _forwarding(target: Task[Any, Any]) -> Any:
    async def forward(given: Handed, job: Job) -> None:
        codec = target.handler.payload
        payload = () if codec is None else (codec.decode(given.payload),)
        await _hand_over(target, payload, given, job)

    return forward


def _escalating(handler: Handler, target: Task[Any, Any], escalate: Escalate) -> Any:
    there, answer = target.handler.payload, escalate.answer
    _check_takes_escalation(handler, target)
    fit = None if answer is NO_ANSWER else handler.encoded(answer)
    if isinstance(fit, Unfit):
        raise ConfigError(
            f"escalate answer must be a result of task {handler.name}: {fit.reason}",
            field="answer",
            value=answer,
        )

    async def escalate_job(given: Handed, job: Job) -> Any:
        if there is None:
            await _hand_over(target, (), given, job)
        else:
            earlier = await _errors_of(target, job)
            most = target.handler.payload_limit
            told = escalation_of(job, given, escalate.instructions, earlier, most)
            await _hand_over(target, (told,), given, job)
        return None if answer is NO_ANSWER else answer

    return escalate_job


def _check_takes_escalation(handler: Handler, target: Task[Any, Any]) -> None:
    codec = target.handler.payload
    try:
        if codec is not None:
            codec.decode(codec_for(Escalation).encode(_SAMPLE))
            codec.encode(_SAMPLE)
    except PayloadError:
        raise ConfigError(
            f"fallback of task {handler.name} must be a task that takes an Escalation, "
            f"got {target.queue}/{target.name}; without Escalate(…), a task is given the payload",
            field="fallback",
            value=target,
        ) from None


async def _errors_of(target: Task[Any, Any], job: Job) -> tuple[ErrorRecord, ...]:
    if job.attempt == 1:
        return ()
    inspector = (await target.app.runtime()).inspector
    view = await inspector.job(job.queue, job.id, lane=lane_of(job.tenant))
    return view.errors if view else ()


async def _hand_over(
    target: Task[Any, Any], payload: tuple[Any, ...], given: Handed, job: Job
) -> None:
    """Enqueue it, however long the broker is away: the lease decides whether that still counts."""
    terms = {"tenant": job.tenant, "key": job.key, "headers": dict(job.headers) or None}
    own = {name: value for name, value in terms.items() if value}
    draft = target.draft(*payload, id=handed_id(job), on_conflict="keep", **own)
    while True:
        try:
            await target.put(draft)
        except StoreUnavailable:
            await asyncio.sleep(_PAUSE_S)
        except Overloaded as error:
            if not given.may_wait:
                raise
            raise NotHandedOver(error.retry_after, error.reason) from None
        else:
            return


async def was_handed_over(fallback: TaskFallback, job: Job) -> bool:
    """Whether an earlier delivery of the job has handed it over, before its worker died."""
    target = fallback.target
    return target is not None and await target.handle(handed_id(job)).state() is not None


def _refusal(options: TaskOptions, words: str, given: Any = None) -> ConfigError:
    got = "" if given is None else f", got {shown(given)}"
    return ConfigError(
        f"fallback of task {options.name} {words}{got}", field="fallback", value=given
    )
