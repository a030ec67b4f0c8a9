"""Dead jobs, the kinds of errors that they died of, and redrives."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from faena.deadletter.redrive_view import RedriveView
from faena.deadletter.views import DeadGroup, DeadLetter, DeadPage, DeadStats, Status
from faena.web.answer import not_found
from faena.web.payload import veiled
from faena.web.reading.reading import USUAL, Limited, Many, Paged, Reading, Rows, Some, Wanted

_FILTERS: Final = ("status", "tenant", "task", "error", "fingerprint", "older_than", "newer_than")


class Filter(msgspec.Struct, forbid_unknown_fields=True):
    """Which dead jobs are meant."""

    queue: list[str] = []
    """Only these; none: all queues."""
    status: Status | None = None
    tenant: str | None = None
    task: str | None = None
    error: str | None = None
    """An exception or a code."""
    fingerprint: str | None = None
    """A kind of error; see the groups."""
    older_than: str | None = None
    """Dead for longer, such as 24h."""
    newer_than: str | None = None
    limit: Limited = USUAL
    cursor: str | None = None
    oldest_first: bool = False


class Kinds(msgspec.Struct, forbid_unknown_fields=True):
    """Which kinds of errors are meant."""

    queue: list[str] = []
    """Only these; none: all queues."""
    limit: Limited = 20
    cursor: str | None = None


class Where(msgspec.Struct, forbid_unknown_fields=True):
    """Which queues are meant."""

    queue: list[str] = []
    """Only these; none: all queues."""


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    """How much of a dead job is meant."""

    payload: bool = False
    """Payload and headers too, with fields that sound secret veiled."""


async def _list(wanted: Wanted) -> DeadPage:
    given, tenant = wanted.given, wanted.caller.tenant
    chosen: dict[str, Any] = {
        name: getattr(given, name) for name in _FILTERS if getattr(given, name) is not None
    }
    if tenant is not None:
        if given.tenant not in {None, tenant}:
            raise not_found("tenant")
        chosen["tenant"] = tenant
    visit, veil = wanted.visit, wanted.visit.site.veil
    page = await wanted.app.dead_letters.list(
        queues=_queues(wanted),
        limit=given.limit,
        cursor=veil.meant(visit),
        is_newest_first=not given.oldest_first,
        **chosen,
    )
    return msgspec.structs.replace(page, cursor=veil.shown(visit, page.cursor))


async def _show(wanted: Wanted) -> Any:
    wanted.check_payload(is_wanted=wanted.given.payload)
    job, own = wanted.where["job"], wanted.caller.tenant
    letter = await wanted.app.dead_letters.get(wanted.queue.name, job)
    if letter is None or (own is not None and letter.tenant != own):
        raise not_found(f"dead job {job} in {wanted.queue.name}")
    shown = letter.to_dict()
    if wanted.given.payload:
        payload = bytes(letter.payload or b"null")
        shown["payload"] = veiled(msgspec.json.decode(payload))
        shown["headers"] = veiled(dict(letter.headers))
    return shown


async def _groups(wanted: Wanted) -> Rows:
    found = await wanted.app.dead_letters.groups(queues=_queues(wanted), limit=200)
    return wanted.page(found, lambda one: f"{one.queue}/{one.fingerprint}", "kinds of errors")


async def _stats(wanted: Wanted) -> DeadStats:
    return await wanted.app.dead_letters.stats(queues=_queues(wanted))


async def _redrives(wanted: Wanted) -> Rows:
    found = await wanted.app.dead_letters.redrives(wanted.queue.name)
    return wanted.page(found, lambda one: f"{10**17 - one.begun_at:020}{one.id}", "redrives")


async def _redrive(wanted: Wanted) -> RedriveView:
    return await wanted.app.dead_letters.redrive_state(wanted.queue.name, wanted.where["redrive"])


def _queues(wanted: Wanted) -> list[str] | None:
    for name in wanted.given.queue:
        if name not in wanted.app.queues:
            raise not_found(f"queue {name}")
    return wanted.given.queue or None


READINGS: Final = (
    Reading(
        name="dead.list",
        path="/dead",
        text="Dead jobs that match, of all queues or of some, a page at a time.",
        answers=Many(DeadLetter),
        read=_list,
        arguments=Filter,
        is_for_tenant=True,
    ),
    Reading(
        name="dead.groups",
        path="/dead/groups",
        text="Dead jobs by kind of error: the 200 kinds with the most pending jobs.",
        answers=Many(DeadGroup),
        read=_groups,
        arguments=Kinds,
    ),
    Reading(
        name="dead.stats",
        path="/dead/stats",
        text="Dead jobs in numbers, and the oldest pending one.",
        answers=DeadStats,
        read=_stats,
        arguments=Where,
    ),
    Reading(
        name="dead.show",
        path="/queues/{queue}/dead/{job}",
        text="One dead job: status, errors, links to other jobs.",
        answers=Some(DeadLetter, more=("payload", "headers")),
        read=_show,
        arguments=Whole,
        is_for_tenant=True,
    ),
    Reading(
        name="redrives.list",
        path="/queues/{queue}/redrives",
        text="The last redrives of a queue, the newest first.",
        answers=Many(RedriveView),
        read=_redrives,
        arguments=Paged,
    ),
    Reading(
        name="redrives.show",
        path="/queues/{queue}/redrives/{redrive}",
        text="How far a redrive is.",
        answers=RedriveView,
        read=_redrive,
    ),
)
