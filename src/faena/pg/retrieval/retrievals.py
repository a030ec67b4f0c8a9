"""Starts requests for archived rows, shows them, opens their files and removes old ones.

Each call names the tenant, and sees only what is that tenant's: the id of another's request is
unknown. A job of the queue `archives` does the work (`collection.py`); its id is that of the
request, so a request that is asked for twice has one job, and one whose process died before it was
enqueued is enqueued when it is asked for again.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Container
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from faena.errors import (
    ArchiveUnreadable,
    ArgumentError,
    ConfigError,
    InvalidTransition,
    JobNotFound,
    arguments,
    shown,
)
from faena.job import Job
from faena.outcomes import Discard
from faena.pg.archive.policy import Archive
from faena.pg.archive.store import ObjectStore
from faena.pg.partition.name import Name, read_name
from faena.pg.retrieval import record
from faena.pg.retrieval.collection import Collection
from faena.pg.retrieval.download import Download
from faena.pg.retrieval.link import (
    Link,
    LinkExpired,
    LinkRefused,
    binding_of,
    read_token,
    write_token,
)
from faena.pg.retrieval.option import Retrieval
from faena.pg.retrieval.period import read_period
from faena.pg.retrieval.record import Record, Result
from faena.pg.retrieval.view import RetrievalView
from faena.states import State
from faena.task import Task
from faena.values.names import check_label

if TYPE_CHECKING:
    from faena.pg.pool import Connection
    from faena.pg.postgres import Postgres

TASK: Final = "retrieve-archive"
SWEEP: Final = "remove-retrieved"
_DAILY: Final = "30 3 * * *"
_TIMEOUT: Final = "12h"
_ATTEMPTS: Final = 8
_PAGE: Final = 500
_LONGEST_TENANT: Final = 500
_KNOWN: Final = """
    SELECT 1 FROM (SELECT table_name FROM faena.retentions UNION ALL
        (SELECT table_name FROM faena.archives WHERE table_name = %(table)s LIMIT 1)) AS known
    WHERE table_name = %(table)s LIMIT 1
"""
_TENANTS: Final = """
    SELECT EXISTS (SELECT FROM faena.archives WHERE table_name = %(table)s),
           EXISTS (SELECT FROM faena.archives
                   WHERE table_name = %(table)s AND tenant_column IS NOT NULL)
"""

_log = logging.getLogger("faena.pg")


class Wish(msgspec.Struct, frozen=True):
    """The payload of the job: everything else is in its row."""

    id: str


class Retrievals:
    """The archives of one PostgreSQL, for those whose rows are in them."""

    def __init__(self, pg: Postgres, options: Retrieval) -> None:
        self._pg = pg
        self.options = options
        pg.stores.add(Archive(to=options.to))
        app = pg.app
        is_new = options.queue not in app.queues
        queue = app.queue(options.queue) if is_new else app.queues[options.queue]
        register = queue.task(name=TASK, timeout=_TIMEOUT, attempts=_ATTEMPTS)
        self._task: Task[Wish, None] = register(self._work)

        async def remove_retrieved() -> int:
            return await self.sweep()

        app.cron(_DAILY, name=SWEEP, queue=queue)(remove_retrieved)

    # -- requests ---------------------------------------------------------------------------------

    async def retrieve(self, table: str, *, tenant: str, start: Any, end: Any) -> RetrievalView:
        """Ask for a tenant's archived rows of a time; the same request finds the same job.

        `start` and `end` are dates, of which both are included, or instants with a time zone.
        """
        check_tenant(tenant)
        period = read_period(start, end)
        with arguments():
            name = read_name(table)
        async with self._pg.transaction("retrieve") as connection:
            known = await _table_named(connection, name, self._pg.retentions)
            await self._refuse_shared(connection, name, known)
            await record.expire(connection, self._now(), _PAGE)
            id_ = await record.add(connection, tenant, known, period)
        return await self.look(id_, tenant=tenant)

    async def _refuse_shared(self, connection: Connection, name: Name, full: str) -> None:
        """Archives with rows of all tenants together are given to nobody."""
        row = await (await connection.execute(_TENANTS, {"table": full})).fetchone()
        has_some, has_own = row or (False, False)
        declared = self._pg.retentions.get(str(name)) or self._pg.retentions.get(full)
        is_shared = has_some or (declared is not None and declared.tenant is None)
        if is_shared and not has_own:
            raise ArgumentError(
                f"table must be one whose retention names the tenant's column, got "
                f"{shown(str(name))}",
                field="table",
                value=str(name),
            )

    async def look(self, id: str, *, tenant: str) -> RetrievalView:  # noqa: A002 - as jobs have one
        """How far a request is; JobNotFound if this tenant has no such request."""
        found = await self._own(id, tenant)
        if found.state != "waiting":
            return _shown(found, None)
        handle = self._pg.app.queues[self.options.queue].handle(found.id)
        view = await handle.view()
        if view is None:
            await self._enqueue(found)
        elif view.state in {State.DEAD, State.CANCELLED}:
            async with self._pg.transaction("retrieve") as connection:
                await record.fail(connection, found.id, f"its job is {view.state}")
            return _shown(await self._own(id, tenant), None)
        return _shown(found, view.progress if view is not None else None)

    async def _enqueue(self, found: Record) -> None:
        """As a job of its tenant, where that can be one's; tenants take turns then."""
        wish = Wish(found.id)
        if is_label(found.tenant):
            await self._task.enqueue(wish, id=found.id, tenant=found.tenant)
        else:
            await self._task.enqueue(wish, id=found.id)

    async def _own(self, id_: str, tenant: str) -> Record:
        check_tenant(tenant)
        found = await self._read(id_)
        if found is None or found.tenant != tenant:
            raise JobNotFound("there is no such retrieval", op="retrieve")
        return found

    async def _ready(self, id_: str, tenant: str) -> Record:
        found = await self._own(id_, tenant)
        if found.state == "waiting":
            raise InvalidTransition(
                "the retrieval has no file yet: look at it until it is ready", op="retrieve"
            )
        if found.state != "ready":
            raise JobNotFound(f"the retrieval has no file: it is {found.state}", op="retrieve")
        return found

    async def _read(self, id_: str) -> Record | None:
        """The file of one whose time is over is as good as removed."""
        if not isinstance(id_, str) or len(id_) != 32 or not id_.isalnum():  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
            return None
        async with self._pg.transaction("retrieve") as connection:
            found = await record.read(connection, id_)
        if found is None or found.state != "ready" or found.expires_at is None:
            return found
        return found if found.expires_at > self._now() else found._replace(state="expired")

    # -- files ------------------------------------------------------------------------------------

    async def link(self, id: str, *, tenant: str) -> tuple[str, datetime]:  # noqa: A002 - as above
        """A token with which the file can be downloaded for a while, and until when."""
        found = await self._ready(id, tenant)
        lifetime = timedelta(microseconds=self.options.lifetime_us)
        until = min(self._now() + lifetime, found.expires_at or datetime.max.replace(tzinfo=UTC))
        link = Link(found.id, int(until.timestamp()), binding_of(tenant, found.key))
        token = write_token(link, self.options.signing())
        return token, datetime.fromtimestamp(link.until, UTC)

    async def open(self, token: str, *, tenant: str | None = None) -> Download:
        """The file of a link; with `tenant`, only if it is that tenant's.

        LinkRefused if it is not valid for this tenant, LinkExpired if its time is over.
        """
        link = read_token(token, self.options.signing(), self.options.clock())
        found = await self._read(link.id)
        if found is None or found.state != "ready":
            if found is not None and tenant not in {None, found.tenant}:
                raise LinkRefused("the link is not valid", op="download")
            raise LinkExpired("the file was removed: ask for it again", op="download")
        is_bound = binding_of(found.tenant, found.key) == link.binding
        if not is_bound or tenant not in {None, found.tenant}:
            raise LinkRefused("the link is not valid", op="download")
        return Download(self.store_at(found.store or ""), found)

    async def save(self, id: str, path: Path, *, tenant: str) -> RetrievalView:  # noqa: A002 - as above
        """Write the file of a request into a directory of this machine."""
        found = await self._ready(id, tenant)
        await Download(self.store_at(found.store or ""), found).save(path)
        return _shown(found, None)

    # -- the job ----------------------------------------------------------------------------------

    async def _work(self, wish: Wish, job: Job) -> None:
        async with self._pg.transaction("retrieve") as connection:
            wanted = await record.read(connection, wish.id)
        if wanted is None or wanted.state != "waiting":
            return
        try:
            await self._collect(wanted, job)
        except ArchiveUnreadable as error:
            _log.error("retrieval %s: %s", wanted.id, error)
            async with self._pg.transaction("retrieve") as connection:
                await record.fail(connection, wanted.id, str(error))
            raise Discard(str(error), code="ARCHIVE_UNREADABLE") from error

    async def _collect(self, wanted: Record, job: Job) -> None:
        store = self.store
        key = f"retrievals/{wanted.id}/{secrets.token_hex(8)}.jsonl.gz"
        async with self._pg.transaction("retrieve") as connection:
            token = await record.begin(connection, wanted.id, store.url, key)
        if token is None:
            return
        await store.delete(*wanted.keys)
        collection = Collection(
            self._pg,
            wanted,
            self.store_at,
            lambda objects, rows: job.progress({"objects": objects, "rows": rows}),
        )
        await store.write(key, collection.chunks())
        expires_at = self._now() + timedelta(microseconds=self.options.keep_us)
        result = Result(collection.rows, collection.size, collection.sha256, expires_at)
        async with self._pg.transaction("retrieve") as connection:
            is_mine = await record.finish(connection, wanted.id, token, result)
        if not is_mine:
            await store.delete(key)

    async def sweep(self) -> int:
        """Remove files whose time is over, as happens daily; returns how many requests are gone."""
        async with self._pg.transaction("retrieve") as connection:
            await record.expire(connection, self._now(), 1_000_000)
        after, gone = "", 0
        while True:
            async with self._pg.transaction("retrieve") as connection:
                some = await record.ended(connection, after, _PAGE)
            for one in some:
                await self.remove_files(one)
            async with self._pg.transaction("retrieve") as connection:
                gone += await record.forget(connection, [one.id for one in some])
            if len(some) < _PAGE:
                return gone
            after = some[-1].id

    async def remove_files(self, one: Record) -> None:
        """Of all attempts of a request."""
        if one.store is not None:
            await self.store_at(one.store).delete(*one.keys)

    # -- where ------------------------------------------------------------------------------------

    @property
    def store(self) -> ObjectStore:
        """Where files are written."""
        return self._pg.stores.of(Archive(to=self.options.to))

    def store_at(self, url: str) -> ObjectStore:
        """The store that a row names."""
        return self._pg.stores.at(url)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.options.clock(), UTC)

    def __repr__(self) -> str:
        return f"<Retrievals of {self._pg.app.name}>"


async def _table_named(connection: Connection, name: Name, declared: Container[str]) -> str:
    """schema.table, if any retention is known for it; a table that is gone may have archives.

    One that is declared and was never archived has none yet: its file is empty.
    """
    found = await connection.execute(
        "SELECT n.nspname || '.' || c.relname FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
        [name.quoted()],
    )
    row = await found.fetchone()
    full = row[0] if row else f"{name.schema or 'public'}.{name.table}"
    if any(one in declared for one in (full, full.removeprefix("public."), str(name))):
        return full
    if await (await connection.execute(_KNOWN, {"table": full})).fetchone() is None:
        raise ArgumentError(
            f"table must be one that has archives, got {shown(str(name))}",
            field="table",
            value=str(name),
        )
    return full


def check_tenant(tenant: Any) -> str:
    """A tenant as a column may have it: any text that PostgreSQL takes."""
    is_text = isinstance(tenant, str) and 0 < len(tenant) <= _LONGEST_TENANT
    if is_text and "\0" not in tenant and not any("\ud800" <= one <= "\udfff" for one in tenant):
        return tenant
    raise ArgumentError(
        f"tenant must be a text of 1 to {_LONGEST_TENANT} characters without NUL",
        field="tenant",
        value=tenant,
    )


def is_label(tenant: str) -> bool:
    """Whether jobs can have this tenant."""
    try:
        check_label("tenant", tenant)
    except ConfigError:
        return False
    return True


def _shown(one: Record, progress: Any) -> RetrievalView:
    told: dict[str, Any] = progress if isinstance(progress, dict) else {}
    return RetrievalView(
        id=one.id,
        table=one.table,
        start=one.start,
        end=one.end,
        state=one.state,
        objects=told.get("objects") if one.state == "waiting" else None,
        rows=one.rows if one.state == "ready" else told.get("rows"),
        size=one.size if one.state == "ready" else None,
        sha256=one.sha256 if one.state == "ready" else None,
        expires_at=one.expires_at if one.state == "ready" else None,
        problem=one.problem,
    )
