"""Handlers whose effect on the database happens once, however often their job is delivered.

    @invoices.task
    @pg.effect
    async def issue(transaction: Connection, invoice: Invoice) -> Cae: ...

The record of the job commits in the handler's own transaction. A delivery that finds the record
returns what was returned before; one that comes while another still runs waits for that to commit
or to roll back. So a worker may die at any point, also between the commit and the settlement. A
`def` handler gets a connection without event loop, and runs in a thread.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from functools import wraps
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from faena.codec import Codec, codec_for
from faena.errors import ConfigError, InternalError, StoreRejected, shown
from faena.job import Job
from faena.pg.failure import translated
from faena.task import Task

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres

_BEGIN: Final = """
    INSERT INTO faena.effects (queue, job, digest, attempt, tenant, is_whole)
    SELECT %(queue)s, %(job)s, %(digest)s, %(attempt)s, %(tenant)s, false
    WHERE NOT EXISTS (SELECT FROM faena.effects WHERE queue = %(queue)s AND job = %(job)s
        AND digest = '' AND coalesce(tenant = %(tenant)s::text, tenant IS NULL))
    ON CONFLICT DO NOTHING RETURNING true
"""
"""Records of earlier releases have no digest."""
_RECORD: Final = """
    UPDATE faena.effects SET result = %(result)s, is_whole = true
    WHERE queue = %(queue)s AND job = %(job)s AND digest = %(digest)s
        AND xmin = pg_current_xact_id()::xid
"""
"""Finds only what this transaction has inserted."""
_RECORDED: Final = """
    SELECT result, is_whole FROM faena.effects
    WHERE queue = %(queue)s AND job = %(job)s AND digest IN (%(digest)s, '')
    ORDER BY digest DESC LIMIT 1
"""


def _record_of(pg: Postgres, job: Job) -> dict[str, Any]:
    """What is known before it has run; the tenant, so that its results can be erased.

    Ids are unique at one time in one shard. The digest tells apart the jobs of other tenants, of
    other namespaces, and later ones with another payload.
    """
    parts = pg.app.namespace.encode(), (job.tenant or "").encode(), job.payload_digest.encode()
    digest = blake2b(b"\0".join(parts), digest_size=16).hexdigest()
    return {
        "queue": job.queue,
        "job": job.origin,
        "digest": digest,
        "attempt": job.attempt,
        "tenant": job.tenant,
    }


class _Shape(NamedTuple):
    """What the wrapped function takes besides the transaction, and where the job is among it."""

    signature: inspect.Signature
    hints: Mapping[str, Any]
    takes_job: bool
    result: Codec[Any]

    def given(self, args: tuple[Any, ...]) -> tuple[Job, tuple[Any, ...]]:
        """The job, and what the function takes."""
        job = next(one for one in args if isinstance(one, Job))
        return job, args if self.takes_job else tuple(one for one in args if one is not job)

    def recorded(self, job: Job, row: tuple[Any, ...] | None) -> Any:
        """What an earlier delivery returned."""
        if row is None:
            raise InternalError(f"the record of job {job.origin} must be there")
        if not row[1]:
            raise StoreRejected(
                f"the effect of job {job.origin} must be whole, got one whose handler has "
                f"committed its transaction by itself, and then failed: see what is done, and "
                f"delete its row of faena.effects to run it again",
                op="effect",
            )
        job.log("its effect was committed before: the result is that of then")
        return None if row[0] is None else self.result.decode(bytes(row[0]))


def effect(pg: Postgres, function: Any) -> Callable[..., Any]:
    """A handler that runs in a transaction with its record; see `Postgres.effect`."""
    _check_handler(function)
    names = sys._getframe(2).f_locals  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - annotations may name local classes
    shape = _shape(function, names)
    is_async = inspect.iscoroutinefunction(function)
    made: Any = wraps(function)(
        _async_effect(pg, function, shape) if is_async else _sync_effect(pg, function, shape)
    )
    made.__signature__, made.__annotations__ = shape.signature, dict(shape.hints)
    del made.__wrapped__  # its signature is another
    return made


def _check_handler(function: Any) -> None:
    if isinstance(function, Task):
        raise ConfigError(
            f"@pg.effect must be written below @queue.task, got task {function.name}: exchange the "
            f"two lines",
            field="task",
        )
    if not callable(function):
        got = "parentheses" if function is None else shown(function)
        raise ConfigError(
            f"@pg.effect must be written without parentheses above a handler, got {got}",
            field="task",
        )


def _async_effect(pg: Postgres, function: Any, shape: _Shape) -> Callable[..., Any]:
    async def once(*args: Any) -> Any:
        job, given = shape.given(args)
        record = _record_of(pg, job)
        # a block of the driver's own forbids `commit()` and `rollback()` inside
        async with pg.transaction() as connection, connection.transaction():
            with translated("effect"):
                found = await connection.execute(_BEGIN, record)
                if await found.fetchone() is None:
                    found = await connection.execute(_RECORDED, record)
                    return shape.recorded(job, await found.fetchone())
            value = await function(connection, *given)
            _check_open(job, connection)
            result = None if value is None else shape.result.encode(value)
            with translated("effect"):
                found = await connection.execute(_RECORD, {**record, "result": result})
            _check_recorded(job, found.rowcount)
            return value
        raise _ended(job, "one that was rolled back")

    return once


def _sync_effect(pg: Postgres, function: Any, shape: _Shape) -> Callable[..., Any]:
    """The same in a thread."""

    def once(*args: Any) -> Any:
        job, given = shape.given(args)
        record = _record_of(pg, job)
        with pg.transaction_sync() as connection, connection.transaction():
            with translated("effect"):
                if not connection.execute(_BEGIN, record).fetchone():
                    return shape.recorded(job, connection.execute(_RECORDED, record).fetchone())
            value = function(connection, *given)
            _check_open(job, connection)
            result = None if value is None else shape.result.encode(value)
            with translated("effect"):
                found = connection.execute(_RECORD, {**record, "result": result})
            _check_recorded(job, found.rowcount)
            return value
        raise _ended(job, "one that was rolled back")

    return once


def _check_open(job: Job, connection: AsyncConnection[Any] | psycopg.Connection[Any]) -> None:
    """PostgreSQL answers the commit of a failed transaction with a rollback, and no error."""
    status = connection.info.transaction_status
    if status is TransactionStatus.INERROR:
        raise _ended(
            job,
            "one in which a statement has failed: let its error pass, or put what may fail into "
            "`transaction.transaction()`",
        )
    if status is not TransactionStatus.INTRANS:
        raise _ended(job, "a lost connection" if connection.closed else "one that was ended")


def _check_recorded(job: Job, number: int) -> None:
    if number != 1:
        raise _ended(job, "another: it must not commit or roll back by itself")


def _ended(job: Job, what: str) -> StoreRejected:
    """Why the attempt fails though its handler did not."""
    words = f"the transaction of task {job.task} must be open when its handler returns, got {what}"
    return StoreRejected(words, op="effect")


def _shape(function: Callable[..., Any], names: Mapping[str, Any]) -> _Shape:
    wanted, name = AsyncConnection, "faena.pg.Connection"
    if not inspect.iscoroutinefunction(function):
        wanted, name = psycopg.Connection, "faena.pg.SyncConnection"
    known = inspect.signature(function)
    first, rest = next(iter(known.parameters), ""), [*known.parameters.values()][1:]
    hints = typing.get_type_hints(function, localns=dict(names), include_extras=True)
    kind = hints.pop(first, None)
    if (typing.get_origin(kind) or kind) is not wanted:
        raise ConfigError(
            f"handler {function.__name__} must take the transaction first, annotated as {name}, "
            f"got {known}",
            field="task",
            value=str(known),
        )
    takes_job = any(hints.get(one.name) is Job or one.name == "job" for one in rest)
    if not takes_job:
        rest.append(inspect.Parameter("job", inspect.Parameter.POSITIONAL_OR_KEYWORD))
        hints["job"] = Job
    result = codec_for(hints.get("return", Any))
    return _Shape(known.replace(parameters=rest), hints, takes_job, result)
