"""Search over all queues: a part of it is answered at once, and it goes on where it has stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from faena.bulk.action import ACTIONS
from faena.engine.calls.access import AccessCalls
from faena.inspection.job_query import JobQuery, Term
from faena.inspection.searcher import Place
from faena.job import JobView
from faena.states import State
from faena.values.names import LABEL_MAX
from faena.web.access.role import Permission
from faena.web.finding import Cursors, query_of, total_of
from faena.web.operation.bulk import NEEDS
from faena.web.operation.view import ALL, own
from faena.web.page.bulk import WORDING
from faena.web.page.past import PastPlace, find_past, history_of
from faena.web.route import Visit

_PER_PAGE: Final = 50
_BUDGET_S: Final = 0.5
"""Then what was found is shown, with a way to go on."""
_ORDER: Final = ("running", "ready", "blocked", "delayed", "dead", "cancelled", "completed")


class Row(NamedTuple):
    """A job as it is listed."""

    job: JobView
    value: str
    """What stands for it where it is chosen: queue, id and tenant."""
    at: int | None
    """When it ended, or when it was enqueued."""
    words: str
    values: Mapping[str, str]
    """What is known of it, in one sentence."""


class Token(NamedTuple):
    """A term of the query, and the query without it."""

    term: Term
    rest: str


class Found(NamedTuple):
    """What a part of a search has found, of live or of past jobs."""

    jobs: Sequence[JobView]
    cursor: str | None
    looked: int | None = None
    back_to: int | None = None
    is_late: bool = False


async def search(visit: Visit) -> Response:
    """The form, and what was found."""
    params = visit.request.query_params
    text = " ".join(params.getlist("q")).strip()
    query = query_of(visit.caller, text)
    is_of_all = visit.caller.tenant is None
    found, total, views = await asyncio.gather(
        _found(visit, query, params.get("cursor")) if query.terms else _nothing(),
        _total(visit, query) if is_of_all and query.terms else _no_number(),
        _views(visit) if is_of_all else _no_views(),
    )
    return visit.site.templates.page(
        visit,
        "search.html",
        text=str(query),
        tokens=[Token(term, str(_less(query, at))) for at, term in enumerate(query.terms)],
        facets=_facets(query, has_history=history_of(visit.app) is not None),
        queues=_named_queues(visit, query) if is_of_all else [],
        rows=[row_of(one) for one in found.jobs],
        found=found,
        looked=found.looked if is_of_all else None,
        total=total,
        further=_address(query, found.cursor) if found.cursor else None,
        is_full=len(found.jobs) >= _PER_PAGE,
        is_first="cursor" not in params,
        views=views,
        now=time.time_ns() // 1_000,
        wording=WORDING,
        actions=fitting(visit, found.jobs) if is_of_all and not query.is_past else [],
        longest_name=LABEL_MAX,
    )


def _address(query: JobQuery, cursor: str) -> str:
    return "?" + urlencode({"q": str(query), "cursor": cursor})


async def _found(visit: Visit, query: JobQuery, cursor: str | None) -> Found:
    cursors = await Cursors.of(visit, query)
    if query.is_past:
        return await _found_past(visit, query, cursors, cursor)
    place = await cursors.read(cursor, Place)
    searcher = await visit.app.bulk.searcher()
    if not cursor and (word := _only_word(query)) is not None:
        named = await searcher.by_id(query, word)
        if named:  # the word is an id; what else it may be is looked for when asked
            return Found([hit.job for hit in named], await cursors.write(Place()), 0)
    part = await searcher.find(query, place, limit=_PER_PAGE, budget_s=_BUDGET_S)
    jobs = list({(hit.shard, hit.job.id): hit.job for hit in part.hits}.values())
    further = None if part.place is None else await cursors.write(part.place)
    return Found(jobs, further, part.looked)


async def _found_past(visit: Visit, query: JobQuery, cursors: Cursors, cursor: str | None) -> Found:
    place = await cursors.read(cursor, PastPlace)
    part = await find_past(visit.app, query, place, limit=_PER_PAGE, budget_s=_BUDGET_S)
    further = None if part.place is None else await cursors.write(part.place)
    return Found(part.jobs, further, back_to=part.back_to, is_late=part.is_late)


async def _nothing() -> Found:
    return Found([], None)


async def _no_number() -> None:
    return None


async def _no_views() -> list[Any]:
    return []


def _only_word(query: JobQuery) -> str | None:
    """The word of a query that is nothing but a word, which may be an id."""
    words = query.values("")
    is_alone = len(query.terms) == 1 and len(words) == 1 and len(words[0]) <= LABEL_MAX
    return words[0] if is_alone and " " not in words[0] else None


async def _total(visit: Visit, query: JobQuery) -> int | None:
    """About how many jobs there are to look at."""
    return None if query.is_past else await total_of(visit, query, frozenset(State))


def _less(query: JobQuery, at: int) -> JobQuery:
    return JobQuery(query.terms[:at] + query.terms[at + 1 :])


def _facets(query: JobQuery, *, has_history: bool) -> list[tuple[str, str, bool]]:
    """What narrows a search with one click: word, query, whether it is chosen."""
    chosen, rest = query.values("state"), query.without("state")
    found = [
        (state, str(rest if state in chosen else rest.only(state, "state")), state in chosen)
        for state in _ORDER
    ]
    if has_history:
        rest = query.without("is")
        found.append(
            ("past", str(rest if query.is_past else rest.only("past", "is")), query.is_past)
        )
    return found


def _named_queues(visit: Visit, query: JobQuery) -> list[str]:
    """Queues that the words of a search may mean."""
    words = [one.lower() for one in query.values("")]
    return [name for name in sorted(visit.app.queues) if any(one in name.lower() for one in words)]


async def _views(visit: Visit) -> list[tuple[str, str, bool]]:
    """Saved views: name, query, whether all have it."""
    calls = AccessCalls((await visit.app.runtime()).engine)
    mine, shared = await asyncio.gather(calls.views(own(visit.caller.name)), calls.views(ALL))
    return [
        *((name, query, False) for name, query in sorted(mine.items())),
        *((name, query, True) for name, query in sorted(shared.items())),
    ]


def row_of(job: JobView) -> Row:
    """A job as a row of a list."""
    words, values = _known(job)
    value = " ".join(filter(None, (job.queue, job.id, job.tenant)))
    return Row(job, value, job.finished_at or job.enqueued_at or job.created_at, words, values)


def _known(job: JobView) -> tuple[str, dict[str, str]]:
    last = job.errors[-1] if job.errors else None
    if last is not None and job.state is not State.COMPLETED:
        return "{error}", {"error": f"{last.code or last.name}: {last.message[:120]}"}
    if job.state is State.RUNNING:
        return "on {worker}", {"worker": job.worker or "?"}
    if job.attempts_made:
        return "attempt {n}", {"n": str(job.attempts_made)}
    return "", {}


def fitting(visit: Visit, jobs: Iterable[JobView]) -> list[str]:
    """What the caller may do with some of these jobs."""
    states = {one.state for one in jobs if one.source == "broker"}
    may = visit.caller.may
    if not may(Permission.OPERATE) or visit.caller.tenant is not None:
        return []
    return [name for name, one in ACTIONS.items() if one.states & states and may(NEEDS[name])]
