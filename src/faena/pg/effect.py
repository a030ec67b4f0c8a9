"""Handlers whose effect on the database happens once, however often their job is delivered.

    @invoices.task
    @pg.effect
    async def issue(transaction: Connection, invoice: Invoice) -> Cae: ...

The record of the job commits in the handler's own transaction. A delivery that finds the record
returns what was returned before; one that comes while another still runs waits for that to commit
or to roll back. So a worker may die at any point, also between the commit and the settlement.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from psycopg import AsyncConnection

from faena.codec import Codec, codec_for
from faena.errors import ConfigError, InternalError, shown
from faena.job import Job

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

P = ParamSpec("P")
R = TypeVar("R")

_KEPT: Final = timedelta(days=30)
"""The age from which records may go: longer than jobs are retried, or wait at the desk."""
_AT_ONCE: Final = 1000


class _Shape(NamedTuple):
    """What the wrapped function takes besides the transaction, and where the job is among it."""

    signature: inspect.Signature
    hints: Mapping[str, Any]
    takes_job: bool
    result: Codec[Any]


def effect(
    pg: Postgres, function: Callable[Concatenate[AsyncConnection[Any], P], Awaitable[R]]
) -> Callable[P, Coroutine[Any, Any, R]]:
    """A handler that runs in a transaction with its record; see `Postgres.effect`."""
    names = sys._getframe(2).f_locals  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - annotations may name local classes
    shape = _shape(function, names)

    @wraps(function)
    async def once(*args: Any) -> Any:
        job = next(one for one in args if isinstance(one, Job))
        given = args if shape.takes_job else tuple(one for one in args if one is not job)
        async with pg.transaction("effect") as connection:
            if not await _begin(connection, job):
                return await _recorded(connection, job, shape.result)
            value = await typing.cast("Any", function)(connection, *given)
            if value is not None:
                await _record(connection, job, shape.result.encode(value))
            return value

    made = typing.cast("Any", once)
    made.__signature__, made.__annotations__ = shape.signature, dict(shape.hints)
    del made.__wrapped__  # its signature is another
    return typing.cast("Callable[P, Coroutine[Any, Any, R]]", made)


def _shape(function: Callable[..., Any], names: Mapping[str, Any]) -> _Shape:
    if not inspect.iscoroutinefunction(function):
        raise ConfigError(
            f"an effect must be an async def, got {shown(function)}",
            field="task",
            value=function,
        )
    known = inspect.signature(function)
    first, *rest = known.parameters.values()
    hints = typing.get_type_hints(function, localns=dict(names), include_extras=True)
    kind = hints.pop(first.name, None)
    if typing.get_origin(kind) is not AsyncConnection and kind is not AsyncConnection:
        raise ConfigError(
            f"handler {function.__name__} must take the transaction first, annotated as "
            f"faena.pg.Connection, got a parameter {first}",
            field="task",
            value=str(known),
        )
    takes_job = any(hints.get(one.name) is Job or one.name == "job" for one in rest)
    if not takes_job:
        rest.append(inspect.Parameter("job", inspect.Parameter.POSITIONAL_OR_KEYWORD))
        hints["job"] = Job
    result = codec_for(hints.get("return", Any))
    return _Shape(known.replace(parameters=rest), hints, takes_job, result)


async def _begin(connection: Connection, job: Job) -> bool:
    """Whether this delivery is the first; waits for another one that is under way."""
    found = await connection.execute(
        "INSERT INTO faena.effects (queue, job, attempt) VALUES (%s, %s, %s) "
        "ON CONFLICT DO NOTHING RETURNING true",
        [job.queue, job.origin, job.attempt],
    )
    return await found.fetchone() is not None


async def _record(connection: Connection, job: Job, result: bytes) -> None:
    await connection.execute(
        "UPDATE faena.effects SET result = %s WHERE queue = %s AND job = %s",
        [result, job.queue, job.origin],
    )


async def _recorded(connection: Connection, job: Job, result: Codec[Any]) -> Any:
    found = await connection.execute(
        "SELECT result FROM faena.effects WHERE queue = %s AND job = %s", [job.queue, job.origin]
    )
    row = await found.fetchone()
    if row is None:
        raise InternalError(f"the record of job {job.origin} must be there")
    job.log("its effect was committed before: the result is that of then")
    return None if row[0] is None else result.decode(bytes(row[0]))


async def forget_effects(pg: Postgres, older_than: timedelta = _KEPT) -> int:
    """Delete old records, in bounded steps; returns how many."""
    total = 0
    while True:
        async with pg.transaction("effects") as connection:
            found = await connection.execute(
                "DELETE FROM faena.effects WHERE (queue, job) IN (SELECT queue, job "
                "FROM faena.effects WHERE committed_at < now() - %s LIMIT %s)",
                [older_than, _AT_ONCE],
            )
        total += found.rowcount
        if found.rowcount < _AT_ONCE:
            return total
