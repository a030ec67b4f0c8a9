"""Past jobs, out of the history in PostgreSQL: window by window, back in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from faena.inspection.job_query import JobQuery
from faena.job import JobView
from faena.web.answer import Refusal

if TYPE_CHECKING:
    from faena.app import Faena

_DAY_US: Final = 86_400_000_000
_LONGEST_US: Final = 3_650 * _DAY_US
_PATIENCE_S: Final = 0.9
_EXACT: Final = ("id", "queue", "task", "tenant", "state", "error")


class PastPlace(msgspec.Struct, frozen=True, array_like=True):
    """How far back a search has come."""

    until: int = 0
    """The end of the window, in microseconds; 0: now."""
    width: int = _DAY_US
    cursor: str | None = None
    """Where it goes on inside the window."""


class PastFindings(NamedTuple):
    """What a part of a search has found."""

    jobs: list[JobView]
    place: PastPlace | None
    """Where it goes on; None at the end."""
    back_to: int
    """It has looked at everything since then."""
    is_late: bool = False
    """Whether the database was too slow to answer."""


def history_of(app: Faena) -> Any:
    """The app's history; None if it has none."""
    pg = next((one for one in app.attachments.values() if hasattr(one, "has_history")), None)
    return pg.history if pg is not None and pg.has_history else None


async def find_past(
    app: Faena, query: JobQuery, place: PastPlace, *, limit: int, budget_s: float
) -> PastFindings:
    """The next past jobs that fit."""
    history = history_of(app)
    if history is None:
        raise Refusal(422, "invalid", "this app keeps no history: only its live jobs are known")
    now = time.time_ns() // 1_000
    place = place if place.until else PastPlace(until=query.until or now)
    oldest = max(query.since or 0, now - _LONGEST_US)
    jobs: list[JobView] = []
    over_at = time.monotonic() + budget_s
    while place.until > oldest:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                found, place = await _step(history, query, place, oldest, limit - len(jobs))
        except TimeoutError:
            return PastFindings(jobs, place, place.until, is_late=True)
        jobs += found
        if len(jobs) >= limit or time.monotonic() >= over_at:
            is_over = place.until <= oldest
            return PastFindings(jobs, None if is_over else place, place.until)
    return PastFindings(jobs, None, place.until)


async def _step(
    history: Any, query: JobQuery, place: PastPlace, oldest: int, limit: int
) -> tuple[list[JobView], PastPlace]:
    from faena.pg.history.past import view_of  # noqa: PLC0415 - needs PostgreSQL's driver

    since = max(oldest, place.until - place.width)
    page = await history.search(
        limit=limit,
        cursor=place.cursor,
        since=_instant(since),
        until=_instant(place.until),
        **_fields(query),
    )
    views = [view_of(one) for one in page.jobs]
    jobs = [one for one in views if query.fits(one)]
    if page.cursor is not None:
        return jobs, msgspec.structs.replace(place, cursor=page.cursor)
    return jobs, PastPlace(until=since, width=2 * place.width)


def _fields(query: JobQuery) -> Mapping[str, Any]:
    """What the database can compare; the rest is compared with what it answers."""
    named = {name: query.values(name) for name in _EXACT}
    exact = {
        name: values[0]
        for name, values in named.items()
        if len(values) == 1 and ("*" not in values[0] or name == "error")
    }
    if exact.get("state") in {"dead", "cancelled"}:
        del exact["state"]  # the history has more words for these
    if query.tenant is not None:
        exact["tenant"] = query.tenant
    return exact


def _instant(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1e6, UTC)
