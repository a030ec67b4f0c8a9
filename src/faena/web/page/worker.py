"""Workers: which processes serve which queues, how many slots are in use, who has gone silent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.responses import Response

from faena.engine.overview import WorkerView
from faena.inspection.workers import merged
from faena.job import JobView
from faena.states import State
from faena.telemetry.snapshot import QueueSnapshot, Snapshot
from faena.web.answer import Refusal, not_found
from faena.web.figure import Figures
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.template import spoken
from faena.web.words import Speaker

if TYPE_CHECKING:
    from faena.app import Faena

_PER_PAGE: Final = 100
_LEAST_LISTED_US: Final = 30_000_000
"""A worker is listed at least for so long after each of its calls; twice its lease, if longer."""
_MOST_QUEUES: Final = 10
_MOST_JOBS: Final = 200
"""Running jobs that are looked through for those of one worker, in each of its queues."""


class Process(NamedTuple):
    """One worker."""

    about: WorkerView
    queues: Sequence[str]
    slots: int
    """In all of its queues: with a bound for all together it may be fewer."""
    silent_us: int
    """For how long at least it has not called; 0 for one that calls as it should."""


class Group(NamedTuple):
    """Workers that serve the same queues."""

    name: str
    """Of a declared pool of these queues; else empty."""
    queues: Sequence[str]
    processes: Sequence[Process]
    wanted: int
    """The processes that the pool declares; 0 without one."""
    hosts: int
    versions: Sequence[str]
    running: int
    slots: int
    silent: int

    @property
    def kind(self) -> str:
        """How it does: warn, ok, or idle where workers of other pools serve its queues."""
        if self.silent or (self.processes and len(self.processes) < self.wanted):
            return "warn"
        return "ok" if self.processes else "idle"


async def workers(visit: Visit) -> Response:
    """All workers, silent ones first."""
    query, say = visit.request.query_params, Speaker(spoken(visit))
    seen = await visit.app.snapshot(max_age="2s", tenants=False)
    queue, host = query.get("queue") or None, query.get("host") or None
    if queue is not None and queue not in visit.app.queues:
        raise not_found(f"queue {queue}")
    everybody = processes_of(visit.app, seen)
    chosen = [
        one
        for one in everybody
        if (queue is None or queue in one.queues) and (host is None or one.about.host == host)
    ]
    first = _page(query.get("from"))
    return visit.site.templates.page(
        visit,
        "workers.html",
        at=seen.at,
        summary=_summary(seen, everybody, say),
        groups=_groups(visit.app, seen, everybody),
        shown=chosen[first : first + _PER_PAGE],
        number=len(chosen),
        next=first + _PER_PAGE if len(chosen) > first + _PER_PAGE else None,
        queue=queue,
        host=host,
        unserved=[one for one in seen.queues if not one.workers and _is_wanted(one)],
    )


async def worker(visit: Visit) -> Response:
    """One of them, with the jobs that it runs."""
    name = visit.request.path_params["worker"]
    seen = await visit.app.snapshot(max_age="2s", tenants=False)
    found = next((one for one in processes_of(visit.app, seen) if one.about.name == name), None)
    if found is None:
        raise not_found(f"worker {name}: it has ended, or has not called for a while")
    jobs, is_cut = await _running(visit.app, found)
    own = {one.queue: w for one in seen.queues for w in one.workers if w.name == name}
    return visit.site.templates.page(
        visit, "worker.html", at=seen.at, one=found, own=own, jobs=jobs, is_cut=is_cut
    )


def processes_of(app: Faena, seen: Snapshot) -> list[Process]:
    """All workers of a snapshot, silent ones first, then by name."""
    views = [(one.queue, worker) for one in seen.queues for worker in one.workers]
    queues, slots = dict[str, list[str]](), dict[str, int]()
    for queue, worker in views:
        queues.setdefault(worker.name, []).append(queue)
        slots[worker.name] = slots.get(worker.name, 0) + (worker.slots or 0)
    found = [
        Process(
            about=about,
            queues=queues[about.name],
            slots=slots[about.name],
            silent_us=_silent_us(app, about, queues[about.name], seen.at),
        )
        for about in merged(worker for _, worker in views)
    ]
    return sorted(found, key=lambda one: (-one.silent_us, one.about.name))


def _silent_us(app: Faena, about: WorkerView, queues: Iterable[str], now: int) -> int:
    """How long it has not called at least, if that is too long.

    One that calls as it should does so before half of the time is over for which it is listed.
    """
    leases = [app.queues[name].options.lease_us for name in queues]
    listed_us = max(_LEAST_LISTED_US, 2 * min(leases))
    silent_us = listed_us - ((about.listed_until or now) - now)
    return silent_us if silent_us > listed_us // 2 else 0


def _groups(app: Faena, seen: Snapshot, everybody: Sequence[Process]) -> list[Group]:
    pools = {tuple(sorted(one.queues)): one for one in app.pools.values()}
    by_queues = dict[tuple[str, ...], list[Process]]()
    for one in everybody:
        by_queues.setdefault(tuple(sorted(one.queues)), []).append(one)
    for queues in pools:
        by_queues.setdefault(queues, [])
    running = {one.queue: one.counts["running"] for one in seen.queues}
    found = [
        Group(
            name=pools[queues].name if queues in pools else "",
            queues=queues,
            processes=some,
            wanted=pools[queues].instances if queues in pools else 0,
            hosts=len({one.about.host for one in some}),
            versions=sorted({one.about.version or "?" for one in some}),
            running=sum(running.get(queue, 0) for queue in queues),
            slots=sum(one.slots for one in some),
            silent=sum(one.silent_us > 0 for one in some),
        )
        for queues, some in by_queues.items()
    ]
    return sorted(found, key=lambda one: (not one.silent, len(one.processes), one.queues))


def _is_wanted(queue: QueueSnapshot) -> bool:
    return queue.counts["ready"] > 0 or queue.counts["running"] > 0


async def _running(app: Faena, process: Process) -> tuple[list[JobView], bool]:
    """The jobs that it runs, the longest first, and whether there may be more."""
    found, is_cut = list[JobView](), len(process.queues) > _MOST_QUEUES
    for name in process.queues[:_MOST_QUEUES]:
        page = await app.queues[name].jobs(State.RUNNING, limit=_MOST_JOBS)
        found += [job for job in page.jobs if job.worker == process.about.name]
        is_cut |= page.cursor is not None
    return sorted(found, key=lambda job: job.started_at or 0), is_cut


def _page(given: str | None) -> int:
    if given is None:
        return 0
    if not (given.isascii() and given.isdigit() and len(given) < 7):
        raise Refusal(422, "invalid", "this is no place in the list of workers: begin at its start")
    return int(given)


# -- words ----------------------------------------------------------------------------------------


def _summary(seen: Snapshot, everybody: Sequence[Process], say: Speaker) -> str:
    write = Figures(say)
    silent = [one for one in everybody if one.silent_us]
    unserved = [one for one in seen.queues if not one.workers and one.counts["ready"]]
    words = list[str]()
    if unserved:
        waiting = sum(one.counts["ready"] for one in unserved)
        words.append(
            say(
                "{n} {n|queue has|queues have} no worker while {jobs} {m|job waits|jobs wait}: "
                "they start when a worker does.",
                n=len(unserved),
                m=waiting,
                jobs=write.number(waiting),
            )
        )
    if silent:
        words.append(
            say(
                "{n} {n|worker has|workers have} not called for {time}: others take over "
                "{n|its|their} jobs when the leases are over.",
                n=len(silent),
                time=write.duration(silent[0].silent_us),
            )
        )
    versions = {one.about.version for one in everybody if one.about.version}
    if len(versions) > 1:
        words.append(say("{n} versions run side by side.", n=len(versions)))
    if not words:
        hosts = len({one.about.host for one in everybody})
        words.append(
            say(
                "{n} {n|worker|workers} on {m} {m|host|hosts}; all of them call as they should.",
                n=len(everybody),
                m=hosts,
            )
            if everybody
            else say("No worker runs, and no job waits.")
        )
    return " ".join(words)


async def _figures(site: Site, say: Speaker) -> Mapping[str, str]:
    seen = await site.app.snapshot(max_age="2s", tenants=False)
    everybody, write = processes_of(site.app, seen), Figures(say)
    found = {"summary": _summary(seen, everybody, say)}
    for group in _groups(site.app, seen, everybody):
        key = "+".join(group.queues)
        found[f"{key}.used"] = f"{write.number(group.running)} / {write.number(group.slots)}"
        found[f"{key}.processes"] = write.number(len(group.processes))
    return found


def channel(site: Site, say: Speaker, _query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab with all workers listens to."""
    return ("workers", say.language), lambda: _figures(site, say)
