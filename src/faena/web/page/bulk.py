"""Bulk actions: what one would do, how far those under way are, and what the past ones did."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from starlette.datastructures import QueryParams
from starlette.responses import Response

from faena.bulk.action import ACTIONS
from faena.bulk.bulks import MOST_CHOSEN
from faena.bulk.record import BulkView
from faena.inspection.searcher import Place
from faena.web.answer import Refusal, not_found, way_back
from faena.web.figure import Figures
from faena.web.finding import query_of, total_of
from faena.web.operation.bulk import NEEDS, chosen_of
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.words import Speaker

_BUDGET_S: Final = 0.7
_MOST_COUNTED: Final = 10_000


class Wording(NamedTuple):
    """What a page says of an action."""

    verb: str
    title: str
    title_of_all: str
    effect: str
    under_way: str
    is_danger: bool = False


WORDING: Final[Mapping[str, Wording]] = {
    "promote": Wording(
        "Run now",
        "Run {jobs} {n|job|jobs} now?",
        "Run all {jobs} {n|job|jobs} that match now?",
        "They become ready now, before their time.",
        "Making jobs ready",
    ),
    "cancel": Wording(
        "Cancel",
        "Cancel {jobs} {n|job|jobs}?",
        "Cancel all {jobs} {n|job|jobs} that match?",
        "They never start; running ones are asked to stop. They can be rerun later.",
        "Cancelling jobs",
        True,
    ),
    "rerun": Wording(
        "Run again",
        "Run {jobs} {n|job|jobs} again?",
        "Run all {jobs} {n|job|jobs} that match again?",
        "The same jobs run again, with fresh attempts.",
        "Running jobs again",
    ),
    "retry": Wording(
        "Retry as new",
        "Retry {jobs} dead {n|job|jobs} as new?",
        "Retry all {jobs} dead {n|job|jobs} that match as new?",
        "A new job is made of each. The dead ones stay, marked as retried.",
        "Retrying dead jobs as new",
    ),
    "resolve": Wording(
        "Resolve",
        "Resolve {jobs} dead {n|job|jobs}?",
        "Resolve all {jobs} dead {n|job|jobs} that match?",
        "They are marked as settled by hand. Nothing retries them.",
        "Resolving dead jobs",
    ),
    "discard": Wording(
        "Discard",
        "Discard {jobs} dead {n|job|jobs}?",
        "Discard all {jobs} dead {n|job|jobs} that match?",
        "They are given up. Nothing retries them.",
        "Discarding dead jobs",
        True,
    ),
    "remove": Wording(
        "Remove",
        "Remove {jobs} {n|job|jobs}?",
        "Remove all {jobs} {n|job|jobs} that match?",
        "The jobs and all that is known of them are gone.",
        "Removing jobs",
        True,
    ),
}
REASONS: Final[Mapping[str, str]] = {
    "unknown": "gone meanwhile",
    "later": "ended after this began",
    "member": "a flow or a group waits for it",
    "taken": "its new id is taken",
    "retried": "retried already",
    "resolved": "resolved already",
    "discarded": "discarded already",
}
"""Why a job was left alone, where it is not the state that it is in."""


class Count(NamedTuple):
    """How many jobs a bulk action would be about."""

    number: int
    is_all: bool
    """Whether all were counted."""
    looked: int = 0
    total: int = 0


async def bulks(visit: Visit) -> Response:
    """Those under way, and past ones."""
    found = await visit.app.bulk.list()
    if any(one.state == "running" for one in found):
        visit.site.carrying.wake()
    return visit.site.templates.page(visit, "bulks.html", bulks=found, wording=WORDING, now=_now())


async def bulk(visit: Visit) -> Response:
    """One of them, live."""
    view = await visit.app.bulk.get(visit.request.path_params["bulk"])
    if view.state == "running":
        visit.site.carrying.wake()
    needs = NEEDS[view.action]
    return visit.site.templates.page(
        visit,
        "bulk.html",
        bulk=view,
        word=WORDING[view.action],
        reasons=REASONS,
        may_resume=visit.caller.may(needs),
        now=_now(),
    )


async def confirm(visit: Visit) -> Response:
    """What would be done, to how many jobs; nothing is done yet."""
    params = visit.request.query_params
    action, text = params.get("action", ""), params.get("q", "")
    if action not in ACTIONS:
        raise not_found(f"action {action}")
    if not visit.caller.may(NEEDS[action]):
        words = f"to {action} jobs needs the permission {NEEDS[action].value}"
        raise Refusal(403, "forbidden", words)
    is_of_all = "all" in params
    jobs = [] if is_of_all else params.getlist("job")
    if not is_of_all and not 0 < len(chosen_of(jobs)) <= MOST_CHOSEN:
        raise Refusal(422, "invalid", f"choose 1 to {MOST_CHOSEN} jobs, or all that match")
    count = await _count(visit, action, text) if is_of_all else Count(len(jobs), is_all=True)
    return visit.site.templates.page(
        visit,
        "bulk-new.html",
        action=action,
        word=WORDING[action],
        jobs=jobs,
        text=text,
        is_of_all=is_of_all,
        count=count,
        back=_back(params),
    )


def _now() -> int:
    return time.time_ns() // 1_000


def _back(params: QueryParams) -> str:
    return way_back(params.get("back") or "/search")


async def _count(visit: Visit, action: str, text: str) -> Count:
    """The jobs that match, as far as they are found within a moment."""
    query, among = query_of(visit.caller, text), ACTIONS[action].states
    if not query.terms or query.is_past:
        raise Refusal(422, "invalid", "a bulk action needs a search of live jobs, with a term")
    searcher = await visit.app.bulk.searcher()
    found = await searcher.find(
        query, Place(), limit=_MOST_COUNTED, budget_s=_BUDGET_S, among=among
    )
    total = await total_of(visit, query, among)
    return Count(len(found.hits), found.place is None, found.looked, total)


def _figures_of(view: BulkView, say: Speaker) -> Mapping[str, str]:
    write = Figures(say)
    part = min(1.0, view.looked / view.total) if view.total else 1.0
    return {
        "state": say(view.state),
        "done": write.number(view.done),
        "refused": write.number(sum(view.refused.values())),
        "pending": write.number(view.pending),
        "looked": write.number(view.looked),
        "part": write.percent(1.0 if view.state == "done" else part, 0),
    }


async def _read(site: Site, ident: str, say: Speaker) -> Mapping[str, str]:
    return _figures_of(await site.app.bulk.get(ident), say)


def channel(site: Site, say: Speaker, query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab that shows one listens to."""
    ident = str(query.get("id", ""))
    if not ident or len(ident) > 64:
        raise not_found("bulk action")
    return ("bulk", ident, say.language), lambda: _read(site, ident, say)
