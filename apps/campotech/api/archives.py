"""An organisation gets back what was archived of it: a job collects it, a signed link leads to it.

The same request finds the same job, and then the same file. A link works for an hour, and only
with the token of the organisation that it was made for.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from apps.campotech.api.answer import Answer
from apps.campotech.api.caller import Caller, Organization, system_of
from apps.campotech.api.problem import Problem, answers
from faena.errors import ArgumentError, InvalidTransition, JobNotFound
from faena.pg import LinkExpired, LinkRefused

if TYPE_CHECKING:
    from apps.campotech.system import System
    from faena.pg import RetrievalView

router: Final = APIRouter(
    prefix="/api/v1/archives", tags=["archives"], responses=answers(401, 422, 503)
)
Table = Literal["jobs", "whatsapp_messages", "audit_logs", "notification_logs"]
Moment = Annotated[str, Field(max_length=40)]
Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
Token = Annotated[str, Path(max_length=200)]
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FIRST_YEAR: Final = 2000
_POLL_S: Final = "2"
_FAILED: Final = "the archives of this time cannot be read now: the operators were told"
_PRIVATE: Final = {"Cache-Control": "private, no-store"}


class ArchiveRequest(Answer):
    """How far a request is."""

    id: str
    state: Literal["waiting", "ready", "failed", "expired", "erased"]
    status: str
    """Where to look again."""
    table: Table
    start: datetime
    end: datetime
    """The first instant that is not included."""
    rows: int | None = None
    """In the file; 0 if nothing of this time is archived."""
    size: int | None = None
    sha256: str | None = None
    link: str | None = None
    """Where the file is: JSON lines, compressed with gzip."""
    link_expires_at: datetime | None = None
    problem: str | None = None


_WAITS: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": ArchiveRequest, "description": "It is being collected: look again"}
}
_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The file",
        "content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("", responses={**_WAITS, **answers(409)})
async def ask_for_archive(
    request: Request,
    response: Response,
    caller: Caller,
    table: Table,
    start_date: Annotated[Moment | None, Query(alias="startDate")] = None,
    end_date: Annotated[Moment | None, Query(alias="endDate")] = None,
    from_: Annotated[Moment | None, Query(alias="from")] = None,
    to: Moment | None = None,
) -> ArchiveRequest:
    """Have archived rows of a time collected; the same request again tells how far that is.

    `startDate` and `endDate`, or `from` and `to`: days in UTC, of which both are included, or
    instants with their offset.
    """
    start = _one("startDate", start_date, "from", from_)
    end = _one("endDate", end_date, "to", to)
    try:
        view = await system_of(request).pg.retrievals.retrieve(
            f"campotech.{table}", tenant=caller.tenant, start=start, end=end
        )
    except ArgumentError as error:
        raise Problem(422, str(error)) from None
    except InvalidTransition as error:
        raise Problem(409, str(error)) from None
    return await _told(system_of(request), response, caller, view)


@router.get("/{archive}", responses={**_WAITS, **answers(404)})
async def look_at_archive(
    request: Request, response: Response, caller: Caller, archive: Id
) -> ArchiveRequest:
    """How far a request is, with a link when its file is ready."""
    try:
        view = await system_of(request).pg.retrievals.look(archive, tenant=caller.tenant)
    except JobNotFound:
        raise Problem(404, "no such request") from None
    return await _told(system_of(request), response, caller, view)


@router.get(
    "/download/{token}",
    response_class=StreamingResponse,
    responses={**_FILE, **answers(403, 410)},
)
async def download_archive(request: Request, caller: Caller, token: Token) -> StreamingResponse:
    """The file of a link."""
    try:
        file = await system_of(request).pg.retrievals.open(token, tenant=caller.tenant)
    except LinkRefused as error:
        raise Problem(403, str(error)) from None
    except LinkExpired as error:
        raise Problem(410, str(error)) from None
    headers = {
        **_PRIVATE,
        "Content-Length": str(file.size),
        "Content-Disposition": f'attachment; filename="{file.name}"',
        "X-Content-Type-Options": "nosniff",
        "X-Checksum-Sha256": file.sha256,
    }
    return StreamingResponse(file.chunks(), 200, headers, media_type="application/gzip")


async def _told(
    system: System, response: Response, caller: Organization, view: RetrievalView
) -> ArchiveRequest:
    """202 while it waits."""
    status = f"{router.prefix}/{view.id}"
    response.headers.update(_PRIVATE)
    link: dict[str, Any] = {}
    if view.state == "waiting":
        response.status_code = 202
        response.headers.update({"Location": status, "Retry-After": _POLL_S})
    if view.state == "ready":
        token, until = await system.pg.retrievals.link(view.id, tenant=caller.tenant)
        where = f"{system.settings.public_url}{router.prefix}/download/{token}"
        link = {"link": where, "link_expires_at": until}
    return ArchiveRequest(
        id=view.id,
        state=view.state,
        status=status,
        table=view.table.removeprefix("campotech."),  # pyright: ignore[reportArgumentType] - it is one that was asked for
        start=view.start,
        end=view.end,
        rows=view.rows,
        size=view.size,
        sha256=view.sha256,
        problem=_FAILED if view.problem else None,
        **link,
    )


def _one(name: str, given: str | None, other: str, same: str | None) -> date | datetime:
    """What was given under one of two names."""
    if (given is None) == (same is None):
        raise Problem(422, f"{name} must be given once, as {name} or {other}")
    return _moment(name, given or same or "")


def _moment(name: str, text: str) -> date | datetime:
    last = datetime.now(UTC).year + 1
    found: date | datetime | None = None
    try:
        is_day = _DAY.fullmatch(text) is not None
        found = date.fromisoformat(text) if is_day else datetime.fromisoformat(text)
    except ValueError:
        pass
    is_exact = not isinstance(found, datetime) or found.tzinfo is not None
    if found is None or not is_exact or not _FIRST_YEAR <= found.year <= last:
        raise Problem(
            422,
            f"{name} must be a day such as 2023-01-31, or an instant with its offset, of the years "
            f"{_FIRST_YEAR} to {last}",
        )
    return found
