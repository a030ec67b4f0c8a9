"""Groups: any number of jobs, and a callback that is enqueued when all of them have ended.

    async with app.group(on_complete=report.draft(day), on_success=archive.draft(day)) as group:
        await group.enqueue_many(send, recipients)

Members are counted as they end, in any queue. Each callback is enqueued once: `on_complete` when
all members have ended, `on_success` when all have completed, perhaps after reruns. If the program
dies before it seals the group, the members still run, but no callback is enqueued.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator, Iterable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from faena.engine.calls.flows import FlowCalls
from faena.errors import (
    ConfigError,
    InvalidTransition,
    JobNotFound,
    StoreError,
    as_text,
    shown,
)
from faena.flows.flow import check_id, job_of, until_over
from faena.flows.plan import check_draft, make
from faena.options import of_many, telling
from faena.producing.receipt import Receipt
from faena.task import Draft, EnqueueFields, Task
from faena.values.view import View

if TYPE_CHECKING:
    from faena.app import Faena

P = TypeVar("P")
R = TypeVar("R")


class GroupView(View, frozen=True, kw_only=True):
    """The state of a group. Instants are the server's microseconds."""

    id: str
    total: int | None
    """Its members; None while it is not sealed."""
    completed: int
    dead: int
    cancelled: int
    created_at: int
    finished_at: int | None
    callbacks: dict[str, str]
    """The states of `complete` and `success`: waiting, sent, completed, dead or cancelled."""

    @property
    def ended(self) -> int:
        """Members that have ended."""
        return self.completed + self.dead + self.cancelled


class Group:
    """A group of jobs, while its members are enqueued and afterwards."""

    def __init__(
        self,
        app: Faena,
        *,
        on_complete: Draft[Any] | None = None,
        on_success: Draft[Any] | None = None,
        id: str | None = None,  # noqa: A002 - as jobs have one
    ) -> None:
        self._app = app
        self._queue, self._name = (None, app.new_id()) if id is None else group_id(app, id)
        drafts = {"complete": on_complete, "success": on_success}
        self._callbacks = {name: draft for name, draft in drafts.items() if draft is not None}
        for draft in self._callbacks.values():
            check_draft(draft)
            self._queue = self._queue or draft.task.queue
        self._members: set[str] = set()
        self._is_open = False
        self._sealed: str | None = None
        """With how many members, once that is known."""
        self._is_counted = True

    @property
    def id(self) -> str:
        """The id for `app.group(id=…)`; known once the group has begun."""
        if self._queue is None:
            raise ConfigError(
                "a group without callbacks has no id before its first member; find an existing "
                'group with app.group(id="queue/id")',
                field="id",
            )
        return f"{self._queue}/{self._name}"

    # -- members --------------------------------------------------------------------------------

    async def enqueue(
        self, task: Task[P, R], /, *payload: P, **options: Unpack[EnqueueFields]
    ) -> Receipt[R]:
        """Enqueue one member; see `Task.enqueue`."""
        draft = task.draft(*payload, **options)
        tells = await self._begin(task, [draft.options.id])
        with self._counting():
            receipt = await task.put(_member(draft, tells))
            self._count([receipt])
        return receipt

    async def enqueue_many(
        self,
        task: Task[P, R],
        payloads: Iterable[P | Draft[P]],
        /,
        **options: Unpack[EnqueueFields],
    ) -> list[Receipt[R]]:
        """Enqueue many members; refused jobs and duplicates do not become members."""
        shared, items = of_many(options), task.items(payloads)
        ids = [one.options.id if isinstance(one, Draft) else None for one in items]
        tells = await self._begin(task, ids)
        with self._counting():
            receipts = await task.put_many(items, telling(shared, tells))
            self._count(receipts)
        return receipts

    @contextlib.contextmanager
    def _counting(self) -> Generator[None]:
        """A call that fails halfway may have enqueued members that were not counted."""
        try:
            yield
        except (StoreError, asyncio.CancelledError):
            self._is_counted = False
            raise

    def _count(self, receipts: Iterable[Receipt[Any]]) -> None:
        """A duplicate that reports to this group is a member, from an earlier run."""
        self._members |= {one.id for one in receipts if one.status == "created" or one.is_member}

    async def _begin(self, task: Task[Any, Any], ids: Sequence[str | None]) -> str:
        self._queue = self._queue or task.queue
        if not self._is_open:
            await self._open()
        if self._sealed is not None:
            for job in ids:
                await self._refuse_new(task, job)
        return f"g:{self._queue}:{self._name}:"

    async def _refuse_new(self, task: Task[Any, Any], job: str | None) -> None:
        """A program that repeats itself may come with the jobs that are members already."""
        if job is None or await task.handle(job).state() is None:
            raise InvalidTransition(
                f"group {self.id} is sealed with {self._sealed} members and takes no more: "
                "read it with view(), or create another",
                op="enqueue",
            )

    async def _open(self) -> None:
        queue = str(self._queue)
        made = {
            name: await make(
                draft, f"g:{queue}:{self._name}:{name}", job_of(queue, self._name, name)
            )
            for name, draft in self._callbacks.items()
        }
        packed = {name: one.pack() for name, one in made.items()}
        answer = await (await self._calls()).open_group(queue, self._name, packed)
        self._is_open, self._sealed = True, None if answer == "OK" else answer

    async def seal(self) -> None:
        """Add no more members: from now on the group can end."""
        if self._queue is None:
            raise ConfigError(
                "a group must have a callback or a member before it is sealed, got none",
                field="group",
            )
        if not self._is_counted:
            raise InvalidTransition(
                f"group {self.id} cannot be sealed: an enqueue failed, so the number of its "
                "members is unknown; enqueue them again in another group",
                op="seal",
            )
        if not self._is_open:
            await self._open()
        total = str(len(self._members))
        answer = await (await self._calls()).seal_group(self._queue, self._name, len(self._members))
        self._sealed = total if answer == "OK" else answer if answer.isdigit() else None
        if answer == "unknown":
            raise _unknown(self.id)
        if answer != "OK":
            raise InvalidTransition(
                f"group {self.id} was sealed with {answer} members, not {total}",
                op="seal",
            )
        await (await self._app.runtime()).relay.try_to_carry(self._queue)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.seal()

    # -- looking --------------------------------------------------------------------------------

    async def view(self) -> GroupView:
        """The number of members, and how they have ended so far."""
        found = await (await self._calls()).group(*self.id.split("/"))
        if not found:
            raise _unknown(self.id)
        total, finished = found.get("total"), found.get("finished")
        names = [name.removeprefix("on:") for name in found if name.startswith("on:")]
        return GroupView(
            id=self.id,
            total=None if total is None else int(total),
            completed=int(found.get("completed", 0)),
            dead=int(found.get("dead", 0)),
            cancelled=int(found.get("cancelled", 0)),
            created_at=int(found["created"]),
            finished_at=None if finished is None else int(finished),
            callbacks={name: found.get(f"s:{name}", b"waiting").decode() for name in names},
        )

    async def wait(self, timeout: timedelta | str | None = None) -> GroupView:
        """Wait until all members have ended, and return how."""

        async def is_over() -> bool:
            return (await self.view()).finished_at is not None

        await until_over(is_over, f"group {self.id}", timeout)
        return await self.view()

    async def _calls(self) -> FlowCalls:
        return FlowCalls((await self._app.runtime()).engine)

    def __repr__(self) -> str:
        return f"<Group {self._queue}/{self._name}>"


def group_id(app: Faena, given: str) -> tuple[str | None, str]:
    """The queue of a group that has begun, if it is named, and the rest of its id."""
    named, slash, name = as_text(given).rpartition("/")
    if not slash:
        return None, check_id(given)
    if named not in app.queues:
        raise ConfigError(
            f"id of a group must be without a slash, or queue/id of an existing group, got "
            f"{shown(given)}: no queue {shown(named)} in app {app.name}",
            field="id",
            value=given,
        )
    return named, check_id(name)


def _unknown(group: str) -> JobNotFound:
    return JobNotFound(f"no group {group} (groups are kept for 7 days after their end)", op="group")


def _member(draft: Draft[P], tells: str) -> Draft[P]:
    return Draft(draft.payload, telling(draft.options, tells), draft.task)
