"""Where technicians are, over HTTP: devices report it, viewers poll or look live (`live.py`)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, WebSocket
from pydantic import Field

from apps.campotech.api import live
from apps.campotech.api.answer import Answer
from apps.campotech.api.caller import Caller, Organization, system_of
from apps.campotech.api.problem import Problem, answers
from apps.campotech.api.query import Since
from apps.campotech.messages.base import Schema
from apps.campotech.messages.fields import Id, Instant
from apps.campotech.tracking import reading
from apps.campotech.tracking.position import Position, Watch
from apps.campotech.tracking.writer import Busy, Unstorable

router: Final = APIRouter(
    prefix="/api/v1/tracking", tags=["tracking"], responses=answers(401, 404, 422, 503)
)
MOST: Final = 500
_AHEAD: Final = timedelta(minutes=2)
"""How far the clock of a device may be ahead."""
_OLDEST: Final = timedelta(days=7)


class DevicePosition(Schema):
    """Where a technician was."""

    technician_id: Id
    latitude: Annotated[float, Field(strict=True, ge=-90, le=90, allow_inf_nan=False)]
    longitude: Annotated[float, Field(strict=True, ge=-180, le=180, allow_inf_nan=False)]
    accuracy: Annotated[float, Field(strict=True, ge=0, le=9999, allow_inf_nan=False)] | None = None
    """In metres."""
    recorded_at: Instant


class DevicePositions(Schema):
    """What a device reports; it may report it again."""

    positions: Annotated[list[DevicePosition], Field(min_length=1, max_length=MOST)]


class TakenPositions(Answer):
    """What was made of a report."""

    stored: int
    ignored: int
    """Older than a week, or of the future: the clock of the device is wrong."""


class LivePosition(Answer):
    """Where a technician was last."""

    technician_id: UUID
    latitude: float
    longitude: float
    accuracy: float | None
    recorded_at: datetime


class Tracked(Answer):
    """Positions that have come, and how to look."""

    mode: Literal["realtime", "polling"]
    """Whether viewers may look live now; if not, they poll."""
    interval_s: float
    """How often to poll."""
    positions: list[LivePosition]
    since: datetime
    """For the next request; a position may come twice."""
    is_over: bool
    """The job has ended, and nobody is shown for it any more."""


class Wanted(Schema):
    """Whom to look at: a technician, whoever does a job, or everybody."""

    technician_id: Id | None = None
    job_id: Id | None = None


class Ticket(Answer):
    """What opens the WebSocket, once the viewer is there."""

    mode: Literal["realtime", "polling"]
    interval_s: float
    ticket: str
    expires_at: datetime
    path: str
    protocols: list[str]
    """For the header `Sec-WebSocket-Protocol`, so that no address has the ticket."""


@router.post("/positions", status_code=202, responses=answers(400, 413))
async def report_positions(
    request: Request, caller: Caller, report: DevicePositions
) -> TakenPositions:
    """Store where technicians were; the answer comes after they are stored."""
    now = datetime.now(UTC)
    known = [
        _position(caller, one)
        for one in report.positions
        if now - _OLDEST <= one.recorded_at <= now + _AHEAD
    ]
    try:
        async with system_of(request).pg.transaction("positions") as connection:
            users = {one.technician_id for one in report.positions}
            await reading.check_users(connection, caller.id, users)
        if known:
            await live.tracking_of(request).writer.store(known)
    except reading.NobodyToWatch:
        raise Problem(422, "technicianId must be that of a user of the organisation") from None
    except Unstorable as error:
        raise Problem(422, str(error)) from None
    except Busy:
        raise Problem(503, "too many positions wait: send them again", retry_after="1") from None
    return TakenPositions(stored=len(known), ignored=len(report.positions) - len(known))


@router.get("")
async def poll_positions(
    request: Request,
    caller: Caller,
    technician_id: Annotated[UUID | None, Query(alias="technicianId")] = None,
    job_id: Annotated[UUID | None, Query(alias="jobId")] = None,
    since: Since | None = None,
) -> Tracked:
    """The last position of each technician that has come since then, or within a day."""
    tracking = live.tracking_of(request)
    watch = _watch(caller, technician_id, job_id)
    try:
        async with system_of(request).pg.transaction("tracking") as connection:
            watched = await reading.resolve(connection, watch)
            seen = await reading.of_watch(connection, watch, watched, since)
    except reading.NobodyToWatch as error:
        raise Problem(404, str(error)) from None
    return Tracked(
        mode=await tracking.mode_now(),
        interval_s=tracking.interval_s,
        positions=[shown(one) for one in seen.positions],
        since=seen.since,
        is_over=watched.is_over,
    )


@router.post("/tickets", status_code=201, responses=answers(400, 413))
async def issue_ticket(request: Request, caller: Caller, wanted: Wanted | None = None) -> Ticket:
    """Get a ticket for the WebSocket, which takes no token: it works for a minute."""
    tracking = live.tracking_of(request)
    given = Wanted() if wanted is None else wanted
    watch = _watch(caller, given.technician_id, given.job_id)
    try:
        async with system_of(request).pg.transaction("tracking") as connection:
            await reading.resolve(connection, watch)
    except reading.NobodyToWatch as error:
        raise Problem(404, str(error)) from None
    ticket = tracking.issue(watch)
    return Ticket(
        mode=await tracking.mode_now(),
        interval_s=tracking.interval_s,
        ticket=ticket,
        expires_at=datetime.now(UTC) + live.LIFETIME,
        path=f"{router.prefix}/live",
        protocols=[live.PROTOCOL, f"{live.PREFIX}{ticket}"],
    )


@router.websocket("/live")
async def look_live(websocket: WebSocket) -> None:
    """Positions as they come."""
    await live.serve(websocket, shown_as_json)


def shown(one: Position) -> LivePosition:
    """As viewers see it."""
    return LivePosition(
        technician_id=one.technician,
        latitude=one.latitude,
        longitude=one.longitude,
        accuracy=one.accuracy,
        recorded_at=one.recorded_at,
    )


def shown_as_json(one: Position) -> dict[str, Any]:
    """The same, for a message."""
    return shown(one).model_dump(mode="json", by_alias=True)


def _position(caller: Organization, one: DevicePosition) -> Position:
    return Position(
        organization=caller.id,
        technician=one.technician_id,
        latitude=one.latitude,
        longitude=one.longitude,
        accuracy=one.accuracy,
        recorded_at=one.recorded_at,
    )


def _watch(caller: Organization, technician: UUID | None, job: UUID | None) -> Watch:
    if technician is not None and job is not None:
        raise Problem(422, "technicianId must be given without jobId, or jobId without it")
    return Watch(organization=caller.id, technician=technician, job=job)
