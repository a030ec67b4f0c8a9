"""The app as a whole: its broker, workers, tasks, alerts and metrics."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated, Final

import msgspec
from starlette.responses import Response

from faena.engine.overview import WorkerView
from faena.inspection.doctor import Finding
from faena.telemetry.alerts.view import AlertsView
from faena.telemetry.health import Health
from faena.telemetry.snapshot import Snapshot
from faena.web.access.role import Permission
from faena.web.reading.reading import Many, Paged, Reading, Rows, Wanted

VERSION: Final = 1
"""Of the API: another one where an answer or an argument changes its meaning."""


class About(msgspec.Struct, frozen=True):
    """What answers."""

    app: str
    environment: str
    version: str
    """Of Faena."""
    api: int
    """Of the API."""


class Me(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str
    role: str
    tenant: str | None
    sees_payloads: bool
    via: str
    """session, token, proxy, oidc or link."""
    permissions: tuple[str, ...]


class Served(msgspec.Struct, frozen=True):
    """A worker, and the queues that it serves."""

    worker: WorkerView
    queues: tuple[str, ...]


class TaskDeclared(msgspec.Struct, frozen=True):
    """A task of the app's code."""

    queue: str
    task: str
    run: str
    """async, thread or process."""
    timeout_us: int | None
    attempts: int | None
    priority: int
    version: int
    batch: int | None
    """The most jobs of one call of its handler; None: one."""


class Patience(msgspec.Struct, forbid_unknown_fields=True):
    """How long the check may take."""

    timeout: str = "2s"


class Changes(msgspec.Struct, forbid_unknown_fields=True):
    """How many changes of alerts are meant."""

    history: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 50


class Format(msgspec.Struct, forbid_unknown_fields=True):
    """How metrics are written."""

    openmetrics: bool = False


async def _about(wanted: Wanted) -> About:
    site = wanted.visit.site
    version = importlib.metadata.version("faena")
    return About(wanted.app.name, site.environment, version, VERSION)


async def _me(wanted: Wanted) -> Me:
    caller = wanted.caller
    may = tuple(one.value for one in Permission if caller.may(one))
    return Me(caller.name, caller.role.value, caller.tenant, caller.sees_payloads, caller.via, may)


async def _status(wanted: Wanted) -> Snapshot:
    return await wanted.app.snapshot(max_age="2s", tenants=False)


async def _health(wanted: Wanted) -> Health:
    return await wanted.app.health(timeout=wanted.given.timeout)


async def _doctor(wanted: Wanted) -> Rows:
    return wanted.page(await wanted.app.doctor(), lambda one: one.name, "findings")


async def _workers(wanted: Wanted) -> Rows:
    snapshot = await wanted.app.snapshot(max_age="2s", tenants=False)
    seen: dict[str, tuple[WorkerView, list[str]]] = {}
    for queue in snapshot.queues:
        for worker in queue.workers:
            seen.setdefault(worker.name, (worker, []))[1].append(queue.queue)
    page = wanted.page(seen.values(), lambda one: one[0].name, "workers")
    found = [{"worker": one.to_dict(), "queues": sorted(queues)} for one, queues in page.items]
    return Rows(found, page.cursor)


async def _tasks(wanted: Wanted) -> Rows:
    found = [
        TaskDeclared(
            queue=one.queue,
            task=one.name,
            run=one.run,
            timeout_us=one.timeout_of(None, one.priority),
            attempts=one.retry.attempts,
            priority=one.priority,
            version=one.version,
            batch=one.batch.size if one.batch else None,
        )
        for queue in wanted.app.queues.values()
        for one in queue.handlers.values()
    ]
    return wanted.page(found, lambda one: f"{one.queue}/{one.task}", "tasks")


async def _alerts(wanted: Wanted) -> AlertsView:
    return await wanted.app.alerts(history=wanted.given.history)


async def _metrics(wanted: Wanted) -> Response:
    page = await wanted.app.metrics(openmetrics=wanted.given.openmetrics)
    return Response(page.body, media_type=page.content_type)


READINGS: Final = (
    Reading(
        name="about",
        path="/version",
        text="What answers: app, environment, versions of Faena and of the API.",
        answers=About,
        read=_about,
    ),
    Reading(
        name="me",
        path="/me",
        text="Who asks, and what they may do.",
        answers=Me,
        read=_me,
        is_for_tenant=True,
    ),
    Reading(
        name="status",
        path="/status",
        text="Everything at one instant: queues, nodes of the broker, upstreams, features.",
        answers=Snapshot,
        read=_status,
    ),
    Reading(
        name="health",
        path="/health",
        text="Whether jobs can be enqueued, and whether all queues are served.",
        answers=Health,
        read=_health,
        arguments=Patience,
    ),
    Reading(
        name="doctor",
        path="/doctor",
        text="How the broker is set up, and how to mend what is wrong with it.",
        answers=Many(Finding),
        read=_doctor,
        arguments=Paged,
        needs=Permission.ADMINISTER,
    ),
    Reading(
        name="workers.list",
        path="/workers",
        text="The workers of all queues, by name.",
        answers=Many(Served),
        read=_workers,
        arguments=Paged,
    ),
    Reading(
        name="tasks.list",
        path="/tasks",
        text="The tasks that the app's code declares.",
        answers=Many(TaskDeclared),
        read=_tasks,
        arguments=Paged,
    ),
    Reading(
        name="alerts.list",
        path="/alerts",
        text="Alerts that fire or are pending, silences, and the last changes.",
        answers=AlertsView,
        read=_alerts,
        arguments=Changes,
    ),
    Reading(
        name="metrics",
        path="/metrics",
        text="The metrics of all queues, for Prometheus.",
        answers=str,
        read=_metrics,
        arguments=Format,
        media_type="text/plain",
        other_media_types=("application/openmetrics-text",),
    ),
)
