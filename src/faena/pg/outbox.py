"""Jobs that are enqueued in a transaction of the caller's own: both happen, or neither.

    async with pg.transaction() as connection:
        await connection.execute("INSERT INTO orders …")
        await pg.outbox.enqueue(connection, confirm, order, tenant="acme")

The row is written by the SQL function `faena.enqueue`, so any language or ORM can do the same. A
relay in the workers (`relay.py`) sends it to the broker. By default the row stays until the job is
settled, so a broker that has lost its data is refilled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
)

import msgspec
import psycopg
from psycopg import AsyncConnection, AsyncCursor

from faena.errors import ArgumentError, ConfigError, PayloadError, shown, unknown_name
from faena.options import EnqueueOptions, Order, build
from faena.pg.failure import translated
from faena.pg.pending_row import PendingRows
from faena.pg.quick_schema import quick_schema
from faena.task import Task
from faena.values.duration import Duration
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres

P = TypeVar("P")

_PARAMETERS: Final = {
    "queue": "text",
    "task": "text",
    "exact": "json",
    "tenant": "text",
    "key": "text",
    "delay": "interval",
    "at": "timestamptz",
    "expires": "timestamptz",
    "priority": "integer",
    "id": "text",
    "headers": "jsonb",
    "durability": "text",
}
_AS_GIVEN: Final = ("tenant", "key", "at", "expires", "priority", "id")

_PUBLISH: Final = """
    INSERT INTO faena.tasks (queue, task, schema, quick, payload_limit, needs_tenant, needs_key)
    VALUES (%s, %s, %s::jsonb, %s::jsonpath, %s, %s, %s)
    ON CONFLICT (queue, task) DO UPDATE SET
        schema = excluded.schema, quick = excluded.quick, payload_limit = excluded.payload_limit,
        needs_tenant = excluded.needs_tenant, needs_key = excluded.needs_key, declared_at = now()
"""
_VIEW: Final = """
    SELECT queue,
        count(*) FILTER (WHERE sent_at IS NULL AND refused IS NULL),
        count(*) FILTER (WHERE sent_at IS NOT NULL),
        count(*) FILTER (WHERE refused IS NOT NULL),
        extract(epoch FROM clock_timestamp()
            - min(created_at) FILTER (WHERE sent_at IS NULL AND refused IS NULL))
    FROM faena.outbox GROUP BY queue
"""


class OutboxFields(TypedDict, total=False):
    """The options of a job in the outbox; as those of `enqueue`."""

    tenant: str
    key: str
    delay: Duration
    at: datetime
    expires: Duration | datetime
    priority: int | str
    id: str
    headers: Mapping[str, str]
    durability: Literal["outbox", "broker"]


class Cursor(Protocol):
    """A cursor as PEP 249 has it."""

    def execute(self, sql: Any, parameters: Any, /) -> Any:
        """Run a statement."""
        ...

    def fetchone(self) -> Any:
        """The next row."""
        ...

    def fetchall(self) -> Any:
        """All rows."""
        ...


class Statement(NamedTuple):
    """An SQL statement and its parameters, by name and in the order of `%s`."""

    sql: str
    parameters: Sequence[Any]
    named_sql: str
    named: Mapping[str, Any]


class OutboxView(View, frozen=True, kw_only=True):
    """How much is in the outbox."""

    pending: int
    """Jobs that are still to be sent to the broker."""
    oldest_s: float | None
    """The age of the oldest of them, in seconds."""
    sent: int
    """Jobs that the broker has, and that are kept until they are settled."""
    refused: int
    """Jobs that the broker never takes; see `faena pg outbox`."""
    queues: Mapping[str, int]
    """Pending jobs by queue."""


class Outbox:
    """The outbox of one database."""

    def __init__(self, pg: Postgres, late_s: float = 60.0) -> None:
        self._pg, self.late_s = pg, late_s
        """From what age of the oldest pending job on the outbox is late."""
        pg.app.read_rows(PendingRows(pg))

    def statement(
        self, task: Task[P, Any], payload: P, **options: Unpack[OutboxFields]
    ) -> Statement:
        """What enqueues a job: for an ORM or a driver of your own."""
        given = _given(task, options)
        given["exact"] = task.encode(payload).decode()
        return _statement("enqueue", given)

    def statement_many(
        self, task: Task[P, Any], payloads: Iterable[P], **options: Unpack[OutboxFields]
    ) -> Statement:
        """What enqueues many jobs with the same options, and answers with a row for each."""
        given = _given(task, options)
        if "id" in given:
            raise ArgumentError(
                f"id must be given for each job, got {shown(given['id'])} for a whole list: "
                f"enqueue them one by one",
                field="id",
                value=given["id"],
            )
        given["exact"] = f"[{','.join(_encoded(task, payloads))}]"
        return _statement("enqueue_many", given)

    async def enqueue(
        self,
        connection: AsyncConnection[Any],
        task: Task[P, Any],
        payload: P,
        **options: Unpack[OutboxFields],
    ) -> str:
        """Enqueue a job in the transaction of a psycopg connection; returns its id.

        Raises ArgumentError for what no worker could run, and nothing is written then.
        """
        _check_async(connection)
        made = self.statement(task, payload, **options)
        with translated("enqueue"):
            found = await connection.execute(made.sql.encode(), made.parameters)
            return _id(await found.fetchone())

    async def enqueue_many(
        self,
        connection: AsyncConnection[Any],
        task: Task[P, Any],
        payloads: Iterable[P],
        **options: Unpack[OutboxFields],
    ) -> list[str]:
        """Enqueue a job for each payload, by one statement; returns their ids, in order.

        The options are those of every job. One bad payload, and nothing is written.
        """
        _check_async(connection)
        made = self.statement_many(task, payloads, **options)
        with translated("enqueue"):
            found = await connection.execute(made.sql.encode(), made.parameters)
            return [_id(row) for row in await found.fetchall()]

    def enqueue_sync(
        self,
        cursor: Cursor,
        task: Task[P, Any],
        payload: P,
        **options: Unpack[OutboxFields],
    ) -> str:
        """The same without event loop, in the transaction of a cursor of psycopg or Django."""
        _check_cursor(cursor)
        made = self.statement(task, payload, **options)
        with translated("enqueue"):
            cursor.execute(made.sql, made.parameters)
            return _id(cursor.fetchone())

    def enqueue_many_sync(
        self,
        cursor: Cursor,
        task: Task[P, Any],
        payloads: Iterable[P],
        **options: Unpack[OutboxFields],
    ) -> list[str]:
        """The same for many jobs."""
        _check_cursor(cursor)
        made = self.statement_many(task, payloads, **options)
        with translated("enqueue"):
            cursor.execute(made.sql, made.parameters)
            return [_id(row) for row in cursor.fetchall()]

    async def publish(self) -> int:
        """Tell the database what this program's tasks take; returns how many there are.

        Workers do it when they start. A task that is gone stays known: another program may run it.
        """
        rows = [
            (queue, name, *_declared(task))
            for queue, made in self._pg.app.queues.items()
            if not made.is_remote
            for name, task in made.tasks.items()
        ]
        async with self._pg.transaction("publish") as connection, connection.cursor() as cursor:
            await connection.execute("SELECT FROM faena.tasks LIMIT 0")  # refused before a pipeline
            await cursor.executemany(_PUBLISH.encode(), rows)
        return len(rows)

    async def name(self) -> str:
        """What jobs call this database."""
        async with self._pg.transaction("outbox") as connection:
            found = await connection.execute("SELECT name FROM faena.identity")
            return _id(await found.fetchone())

    async def view(self) -> OutboxView:
        """How much is in it now."""
        async with self._pg.transaction("outbox") as connection:
            found = await connection.execute(_VIEW.encode())
            rows = await found.fetchall()
        ages = [float(age) for *_, age in rows if age is not None]
        return OutboxView(
            pending=sum(row[1] for row in rows),
            oldest_s=max(ages, default=None),
            sent=sum(row[2] for row in rows),
            refused=sum(row[3] for row in rows),
            queues={row[0]: row[1] for row in rows if row[1]},
        )


def _check_async(connection: Any) -> None:
    is_sync = isinstance(connection, psycopg.Connection | psycopg.Cursor)
    if is_sync or not hasattr(connection, "execute"):
        raise ArgumentError(
            f"connection must be an async one of psycopg, got {shown(connection)}: without event "
            f"loop, use enqueue_sync with a cursor",
            field="connection",
        )


def _check_cursor(cursor: Any) -> None:
    is_async = isinstance(cursor, AsyncConnection | AsyncCursor)
    if is_async or not (hasattr(cursor, "execute") and hasattr(cursor, "fetchone")):
        raise ArgumentError(
            f"cursor must be one without event loop, such as connection.cursor() of psycopg, got "
            f"{shown(cursor)}: in a coroutine, use enqueue with the connection",
            field="cursor",
        )


def _given(task: Task[Any, Any], options: OutboxFields) -> dict[str, Any]:
    """The arguments of `faena.enqueue` but the payload, checked as `enqueue` checks them."""
    if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
        raise ConfigError(f"task must be a task, got {shown(task)}", field="task", value=task)
    given: dict[str, Any] = {"queue": task.queue, "task": task.name}
    if options:
        given |= _checked(options)
    headers = dict(options.get("headers") or {})
    if (tracing := task.app.tracing) is not None:
        tracing.stamp(headers)
    if headers:
        given["headers"] = msgspec.json.encode(headers).decode()
    return given


def _checked(options: OutboxFields) -> dict[str, Any]:
    for name, value in options.items():
        if name not in _PARAMETERS:
            raise unknown_name("outbox option", name, OutboxFields.__annotations__, value=value)
    durability = options.get("durability", "outbox")
    if durability not in {"outbox", "broker"}:
        raise ConfigError(
            f"durability must be outbox or broker, got {shown(durability)}",
            field="durability",
            value=durability,
        )
    rest = {name: value for name, value in options.items() if name != "durability"}
    known = build(EnqueueOptions, "enqueue", rest)
    given = {name: getattr(known, name) for name in _AS_GIVEN if getattr(known, name) is not None}
    if known.delay_us:
        given["delay"] = timedelta(microseconds=known.delay_us)
    if known.lasts_us:
        given["expires"] = datetime.now(UTC) + timedelta(microseconds=known.lasts_us)
    if durability != "outbox":
        given["durability"] = durability
    return given


def _encoded(task: Task[Any, Any], payloads: Iterable[Any]) -> list[str]:
    made: list[str] = []
    for payload in task.items(payloads):
        try:
            made.append(task.encode(payload).decode())
        except PayloadError as error:
            words = f"item {len(made)} of the list: {error}"
            raise PayloadError(words, fields=error.fields, op="enqueue") from error
    return made


def _statement(function: str, given: Mapping[str, Any]) -> Statement:
    casts = [f"{name} => %s::{_PARAMETERS[name]}" for name in given]
    named = [f"{name} => CAST(:{name} AS {_PARAMETERS[name]})" for name in given]
    return Statement(
        f"SELECT faena.{function}({', '.join(casts)})",
        [*given.values()],
        f"SELECT faena.{function}({', '.join(named)})",
        given,
    )


def _declared(task: Task[Any, Any]) -> tuple[str | None, str | None, int, bool, bool]:
    handler, order = task.handler, task.app.queues[task.queue].options.order
    schema = handler.payload.schema() if handler.payload else {"type": "null"}
    text = None if schema is None else msgspec.json.encode(schema).decode()
    needs_tenant = order in {Order.TENANT, Order.KEY}
    quick = quick_schema(schema)
    return text, quick, handler.payload_limit, needs_tenant, order is Order.KEY


def _id(row: Any) -> str:
    return str(row[0])
