"""Jobs of the field over HTTP: pages of them, and the end of one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import Field, StrictInt

from apps.campotech.api.answer import Answer
from apps.campotech.api.caller import Caller, system_of
from apps.campotech.api.problem import Problem, answers
from apps.campotech.api.query import Since
from apps.campotech.jobs import page
from apps.campotech.jobs.complete import Completion, NoSuchJob, NotCompletable
from apps.campotech.messages.base import Schema
from apps.campotech.messages.fields import MOST_PESOS, Text

router: Final = APIRouter(prefix="/api/v1", tags=["jobs"], responses=answers(401, 422, 503))
_RECENT: Final = timedelta(days=30)
_MOST_CENTS: Final = int(MOST_PESOS * 100)


class JobCompletion(Schema):
    """What a technician says at the end; what is missing stays as it is."""

    total_cents: Annotated[StrictInt, Field(ge=1, le=_MOST_CENTS)] | None = None
    description: Annotated[Text, Field(max_length=10_000)] | None = None


class CompletedJob(Answer):
    """A job that is completed."""

    id: UUID
    status: Literal["completed"] = "completed"
    completed_at: datetime
    is_new: bool
    """False: it was completed before, and nothing has changed."""
    invoice_id: UUID | None
    """Where its invoice will be; null: it has no customer or no total, and gets none."""
    invoice: Literal["accepted", "known", "none"]
    """Whether it is asked for, made, or will not be made."""


class ListedJob(Answer):
    """A job."""

    id: UUID
    customer_id: UUID | None
    assigned_to: UUID | None
    status: str
    description: str
    address: str | None
    scheduled_date: datetime | None
    total_cents: int | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


class JobPage(Answer):
    """Some jobs, the newest first."""

    jobs: list[ListedJob]
    next_cursor: str | None
    """For the next page; null: this is the last one."""


@router.post("/jobs/{job}/complete", status_code=202, responses=answers(400, 404, 409, 413))
async def complete_job(
    request: Request, caller: Caller, job: UUID, said: JobCompletion | None = None
) -> CompletedJob:
    """End a job and have its invoice made; a second time is the same."""
    given = Completion() if said is None else Completion(**said.model_dump())
    try:
        done = await system_of(request).completing.complete(caller.id, job, given)
    except NoSuchJob:
        raise Problem(404, "no such job") from None
    except NotCompletable as error:
        raise Problem(409, str(error)) from None
    state = "none" if done.invoice is None else "known" if done.is_billed else "accepted"
    return CompletedJob(
        id=job, completed_at=done.at, is_new=done.is_new, invoice_id=done.invoice, invoice=state
    )


@router.get("/jobs")
async def list_jobs(
    request: Request,
    caller: Caller,
    since: Since | None = None,
    until: Since | None = None,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=page.MOST)] = page.PAGE,
) -> JobPage:
    """Jobs that were made since a day or an instant (by default: 30 days), the newest first.

    Days are those of UTC. Give `nextCursor` as `cursor`, with the same `since`, for the next page.
    """
    end = datetime.now(UTC) if until is None else until
    begin = end - _RECENT if since is None else since
    try:
        after = None if cursor is None else page.Cursor.read(cursor)
    except page.BadCursor as error:
        raise Problem(422, str(error)) from None
    async with system_of(request).pg.transaction("jobs") as connection:
        found = await page.read(
            connection, caller.id, since=begin, until=end, after=after, most=limit
        )
    jobs = [ListedJob.model_validate(one) for one in found.jobs]
    return JobPage(jobs=jobs, next_cursor=None if found.after is None else str(found.after))
