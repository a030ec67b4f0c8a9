"""The lists of what surrounds work: tenants, workers, schedules, upstreams, alerts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from faena.cli.monitor.listing import Deed, Listing, Reading, Row
from faena.cli.output import counted, instant, plain
from faena.cli.status_reading import lasting
from faena.inspection.workers import merged
from faena.scheduling.view import ScheduleView
from faena.telemetry.alerts.view import AlertView
from faena.tenancy.tenants import TenantView

_OF_EACH: Final = 50
_PANIC_LASTS: Final = "1h"


class Tenants(Listing):
    """The tenants with the most live jobs of every queue."""

    title = "Tenants"
    heads = ("queue", "tenant", "live", "running", "weight", "kept back by")

    async def read(self) -> Reading:
        queues = [one for one in self.app.queues.values() if one.options.is_fair]
        found = await asyncio.gather(*(queue.tenants(limit=_OF_EACH) for queue in queues))
        rows = [
            Row(f"{queue.name}/{one.tenant or ''}", _tenant(queue.name, one), _held(one), one)
            for queue, tenants in zip(queues, found, strict=True)
            for one in tenants
        ]
        rows.sort(key=lambda row: -row.about.live)
        live = sum(row.about.live for row in rows)
        return Reading(f"{counted(live, 'live job')} of {counted(len(rows), 'tenant')}", rows)

    def deeds(self, row: Row) -> Sequence[Deed]:
        """Hold it, or end its hold."""
        queue, _, name = row.key.partition("/")
        tenant = self.app.queues[queue].tenant(name or None)
        if row.about.held_until is not None:
            effect = f"Release {name} in {queue}? {counted(row.about.live, 'live job')} may go on."
            return [
                Deed(
                    key="h",
                    words="release",
                    effect=effect,
                    do=lambda: tenant.release(by=self.by),
                )
            ]
        effect = f"Hold {name} in {queue}? {counted(row.about.live, 'live job')} will wait."
        return [
            Deed(
                key="h",
                words="hold",
                effect=effect,
                do=lambda: tenant.hold("held in the monitor", by=self.by),
            )
        ]


def _tenant(queue: str, one: TenantView) -> Sequence[str]:
    gates = ", ".join(f"{gate.name}: {gate.detail}" for gate in one.gates)
    weight = "" if one.weight is None else f"{one.weight:g}"
    name = one.tenant or "(none)"
    return queue, name, f"{one.live:,}", f"{one.running:,}", weight, plain(gates)


def _held(one: TenantView) -> str:
    return "yellow" if one.held_until is not None else ""


class Workers(Listing):
    """Every worker process, and the queues that it serves."""

    title = "Workers"
    heads = ("worker", "host", "pid", "version", "since", "queues")

    async def read(self) -> Reading:
        queues = [*self.app.queues.values()]
        views = await asyncio.gather(*(queue.overview() for queue in queues))
        served: dict[str, list[str]] = {}
        for queue, view in zip(queues, views, strict=True):
            for worker in view.workers:
                served.setdefault(worker.name, []).append(queue.name)
        found = merged([worker for view in views for worker in view.workers])
        rows = [
            Row(
                one.name,
                (
                    one.name,
                    one.host or "-",
                    str(one.pid or "-"),
                    one.version or "-",
                    instant(one.since) or "-",
                    ", ".join(served[one.name]),
                ),
            )
            for one in found
        ]
        idle = [queue.name for queue, view in zip(queues, views, strict=True) if not view.workers]
        none = f"; no worker serves {', '.join(idle)}" if idle else ""
        return Reading(f"{counted(len(rows), 'worker')}{none}", rows)


class Schedules(Listing):
    """All schedules, those that are due first."""

    title = "Schedules"
    heads = ("schedule", "when", "task", "state", "next", "last", "fired")

    async def read(self) -> Reading:
        found = await self.app.schedules.list()
        rows = [
            Row(one.name, _schedule(one), "yellow" * (one.state == "paused"), one) for one in found
        ]
        return Reading(counted(len(rows), "schedule"), rows)

    def deeds(self, row: Row) -> Sequence[Deed]:
        """Run it now, pause it, or end its pause."""
        name, schedules, by = row.key, self.app.schedules, self.by
        run = Deed(
            key="n",
            words="run now",
            effect=f"Run {name} now, besides its instants?",
            do=lambda: schedules.run(name, by=by),
        )
        if row.about.state == "paused":
            effect, change = f"Resume {name}? It fires again from the next instant on.", "resume"
            do = lambda: schedules.resume(name, by=by)  # noqa: E731 - one of two
        else:
            effect, change = f"Pause {name}? It fires no more until it is resumed.", "pause"
            do = lambda: schedules.pause(name, by=by)  # noqa: E731 - the other one
        return [run, Deed(key="p", words=change, effect=effect, do=do)]


def _schedule(one: ScheduleView) -> Sequence[str]:
    then, last = instant(one.next_at) or "-", instant(one.last_at) or "-"
    return one.name, one.when, f"{one.queue}/{one.task}", one.state, then, last, str(one.fired)


class Upstreams(Listing):
    """Outside services: their breakers and panics."""

    title = "Upstreams"
    heads = ("upstream", "state", "calls", "failed", "since", "limits", "panic")

    async def read(self) -> Reading:
        found = await self.app.upstream_views()
        bad = [one.name for one in found if one.state != "closed" or one.panic]
        rows = [
            Row(
                one.name,
                (
                    one.name,
                    one.state.replace("_", " "),
                    str(one.calls),
                    str(one.failed),
                    instant(one.since) or "-",
                    ", ".join(f"{use.used} of {use.limit}" for use in one.limits),
                    plain(f"{one.panic.reason}, by {one.panic.by}") if one.panic else "",
                ),
                "bold red" if one.name in bad else "",
                one,
            )
            for one in found
        ]
        return Reading(f"not closed: {', '.join(bad)}" if bad else "all are closed", rows)

    def deeds(self, row: Row) -> Sequence[Deed]:
        """Stop all calls, or permit them again."""
        name, control, by = row.key, self.app.upstream_control, self.by
        if row.about.panic:
            effect = f"End the panic of {name}? Its breaker decides again."
            return [
                Deed(
                    key="p",
                    words="end panic",
                    effect=effect,
                    do=lambda: control.end_panic(name, by=by),
                )
            ]
        effect = f"Call a panic of {name} for an hour? No process calls it; its jobs wait."
        return [
            Deed(
                key="p",
                words="panic",
                effect=effect,
                do=lambda: control.panic(
                    name, reason="called in the monitor", by=by, lasting=_PANIC_LASTS
                ),
            )
        ]


class Alerts(Listing):
    """What fires now, and what would if it goes on."""

    title = "Alerts"
    heads = ("severity", "alert", "about", "for", "value")

    async def read(self) -> Reading:
        view = await self.app.alerts(history=0)
        rows = [_alert(one, view.at, "firing") for one in view.firing]
        rows += [_alert(one, view.at, "pending") for one in view.pending]
        firing, silences = (
            counted(len(view.firing), "alert"),
            counted(len(view.silences), "silence"),
        )
        return Reading(f"{firing} firing, {silences}", rows)

    def deeds(self, row: Row) -> Sequence[Deed]:
        """Send no notices for an hour."""
        alert: AlertView = row.about
        effect = f"Send no notices of {alert.rule} of {alert.subject} for an hour?"
        return [
            Deed(
                key="s",
                words="silence",
                effect=effect,
                do=lambda: self.app.silence(
                    alert.rule, alert.subject, lasting="1h", reason="monitor", by=self.by
                ),
            )
        ]


def _alert(one: AlertView, now: int, kind: str) -> Row:
    severity = "silenced" if one.is_silenced else one.severity if kind == "firing" else kind
    style = "bold red" if severity == "critical" else "yellow" if severity == "warning" else ""
    cells = (severity, one.rule, one.subject, lasting(now - one.since) or "", plain(one.text))
    return Row(f"{one.rule}/{one.subject}/{one.severity}", cells, style, one)
