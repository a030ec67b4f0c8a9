"""The overview: what is wrong, how bad, and where to go."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from faena.telemetry.snapshot import QueueSnapshot, Snapshot
from faena.telemetry.statistics import QueueStatistics, TaskStatistics
from faena.web.answer import see_other
from faena.web.curve import parts, spark
from faena.web.figure import Figures
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.template import spoken
from faena.web.words import Speaker

_DRAWN: Final = ("ready", "delayed", "blocked", "running")
_BUSY: Final = 0.95
_FAILING: Final = 0.05
_FAILING_BADLY: Final = 0.15
_SLOW_US: Final = 30_000_000
_RANKS: Final = {"held": 0, "crit": 1, "warn": 2, "idle": 3, "ok": 4}


class Row(NamedTuple):
    """One queue as the table shows it."""

    name: str
    kind: str
    """How it does: held, crit, warn, idle or ok."""
    reason: str
    """Why, in words; empty where all is well."""
    holds: Sequence[str]
    """The reasons for which it is held."""
    counts: Mapping[str, int]
    bar: Sequence[tuple[str, float, float]]
    label: str
    depth: str
    oldest: str
    spark: str
    rate: str
    failed: str
    failing: str
    """A class for the figure: bad, warn or nothing."""
    wait: str
    slots: str
    busy: float
    """The part of its slots in use, in percent."""


class Model(NamedTuple):
    """All that the page shows."""

    rows: Sequence[Row]
    needs: Sequence[Row]
    """Those that somebody should look at, worst first."""
    summary: str
    vitals: Sequence[tuple[str, str, str, str, str]]
    """Name, words, figure, second line and line over time of each."""


async def overview(visit: Visit) -> Response:
    """All queues, worst first; who sees one tenant only starts at that."""
    if visit.caller.tenant is not None:
        return see_other(visit, f"/tenants/{quote(visit.caller.tenant)}")
    model = await read(visit.site, Speaker(spoken(visit)))
    return visit.site.templates.page(visit, "overview.html", model=model)


async def figures(site: Site, say: Speaker) -> Mapping[str, str]:
    """What changes while the page is open: name of a figure → its text."""
    model = await read(site, say)
    found = {f"vital.{name}": figure for name, _, figure, _, _ in model.vitals}
    for row in model.rows:
        for part in ("depth", "oldest", "rate", "failed", "wait", "slots"):
            found[f"{row.name}.{part}"] = getattr(row, part)
    found["summary"] = model.summary
    return found


async def read(site: Site, say: Speaker) -> Model:
    """Read and work out what the page shows."""
    snapshot, minutes = await asyncio.gather(
        site.app.snapshot(max_age="2s", tenants=False),
        site.recent.all(),
    )
    return _Writer(say).model(snapshot, minutes)


class _Writer:
    """Writes the page for one reader."""

    def __init__(self, say: Speaker) -> None:
        self._say, self._figures = say, Figures(say)

    def model(self, snapshot: Snapshot, minutes: Mapping[str, Sequence[QueueStatistics]]) -> Model:
        most = max((_drawn(one) for one in snapshot.queues), default=0)
        rows = [self._row(one, minutes[one.queue], most) for one in snapshot.queues]
        rows.sort(key=lambda row: (_RANKS[row.kind], -sum(row.counts.values()), row.name))
        needs = [row for row in rows if row.kind in {"held", "crit", "warn"}]
        return Model(
            rows=rows,
            needs=needs,
            summary=self._summary(rows),
            vitals=self._vitals(snapshot, minutes),
        )

    def _summary(self, rows: Sequence[Row]) -> str:
        held = sum(row.kind == "held" for row in rows)
        wanting = sum(row.kind in {"crit", "warn"} for row in rows)
        healthy = len(rows) - held - wanting
        return self._say(
            "{held} {held|queue|queues} held, {wanting} {wanting|needs|need} attention, "
            "{healthy} healthy",
            held=held,
            wanting=wanting,
            healthy=healthy,
        )

    def _row(self, one: QueueSnapshot, minutes: Sequence[QueueStatistics], most: int) -> Row:
        write, last = self._figures, _together(minutes[-15:])
        rates = [point.counters.get("claimed", 0) for point in minutes[:-1]]
        kind, reason = self._state(one, last)
        counts = {state: one.counts.get(state, 0) for state in _DRAWN}
        rate = last.error_rate or 0.0
        return Row(
            name=one.queue,
            kind=kind,
            reason=reason,
            holds=sorted({hold.reason for hold in one.holds}),
            counts=counts,
            bar=parts([*counts.items()], most),
            label=", ".join(
                f"{write.number(number)} {self._say(state)}" for state, number in counts.items()
            ),
            depth=write.number(sum(counts.values())),
            oldest=write.duration(one.oldest_us),
            spark=spark(rates),
            rate=write.number(rates[-1] if rates else 0),
            failed=write.percent(last.error_rate),
            failing="bad" if rate >= _FAILING_BADLY else "warn" if rate >= _FAILING else "",
            wait=write.duration(last.wait.p95_us),
            slots=f"{write.number(counts['running'])} / {write.number(one.slots)}",
            busy=round(100 * min(1.0, one.utilization or 0.0), 1),
        )

    def _state(self, one: QueueSnapshot, last: TaskStatistics) -> tuple[str, str]:
        say, write = self._say, self._figures
        if one.holds:
            reasons = ", ".join(sorted({hold.reason for hold in one.holds}))
            return "held", say("Held: {reasons}", reasons=reasons)
        waiting = one.counts.get("ready", 0)
        if waiting and not one.workers:
            return "crit", say("{n} {n|job waits|jobs wait}, and no worker serves it", n=waiting)
        rate = last.error_rate or 0.0
        if rate >= _FAILING:
            words = say("{part} of attempts fail", part=write.percent(rate))
            return ("crit" if rate >= _FAILING_BADLY else "warn"), words
        if (one.oldest_us or 0) >= _SLOW_US:
            words = say("The oldest job has waited {time}", time=write.duration(one.oldest_us))
            return "warn", words
        if one.slots and (one.utilization or 0) >= _BUSY and waiting:
            return "warn", say("All slots are busy")
        return ("ok", "") if one.workers else ("idle", say("No worker serves it"))

    def _vitals(
        self, snapshot: Snapshot, minutes: Mapping[str, Sequence[QueueStatistics]]
    ) -> list[tuple[str, str, str, str, str]]:
        say, write, queues = self._say, self._figures, snapshot.queues
        waiting = sum(one.counts.get("ready", 0) for one in queues)
        deepest = max(queues, default=None, key=lambda one: one.counts.get("ready", 0))
        most = say("most in {queue}", queue=deepest.queue) if waiting and deepest else ""
        oldest = max((one for one in queues if one.oldest_us), default=None, key=_age)
        age, where = (oldest.oldest_us, oldest.queue) if oldest else (None, "")
        started = _summed(minutes, "claimed")
        rate = started[-2] if len(started) > 1 else 0
        failed = _together([point for points in minutes.values() for point in points[-15:]])
        lately = say("in a quarter of an hour")
        workers = {worker.name for one in queues for worker in one.workers}
        dead = sum(one.counts.get("dead", 0) for one in queues)
        return [
            ("waiting", say("Waiting"), write.number(waiting), most, ""),
            ("oldest", say("Oldest ready"), write.duration(age), where, ""),
            ("started", say("Started a minute"), write.number(rate), "", spark(started[:-1], 28)),
            ("failed", say("Failed attempts"), write.percent(failed.error_rate), lately, ""),
            ("workers", say("Workers"), write.number(len(workers)), "", ""),
            ("dead", say("Dead, to decide"), write.number(dead), "", ""),
        ]


def _age(one: QueueSnapshot) -> int:
    return one.oldest_us or 0


def _drawn(one: QueueSnapshot) -> int:
    return sum(one.counts.get(state, 0) for state in _DRAWN)


def _together(points: Sequence[QueueStatistics]) -> TaskStatistics:
    """All tasks of some minutes added up."""
    tasks = tuple(task for point in points for task in point.tasks)
    return QueueStatistics(queue="", since=0, until=0, counters={}, tasks=tasks).together()


def _summed(minutes: Mapping[str, Sequence[QueueStatistics]], name: str) -> list[int]:
    """A counter of all queues, minute by minute."""
    found: dict[int, int] = {}
    for points in minutes.values():
        for point in points:
            found[point.since] = found.get(point.since, 0) + point.counters.get(name, 0)
    return [found[at] for at in sorted(found)]


def channel(site: Site, say: Speaker, _query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab that shows this page listens to: its key, and how it is read."""
    return ("overview", say.language), lambda: figures(site, say)
