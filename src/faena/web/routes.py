"""All routes of the dashboard and of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from faena.web.access.role import Permission
from faena.web.openapi.answer import description
from faena.web.operation.declared import OPERATIONS
from faena.web.page import (
    access,
    alert,
    audit,
    bulk,
    capacity,
    cost,
    dead,
    door,
    flow,
    invitation,
    job,
    oidc,
    overview,
    queue,
    schedule,
    search,
    stream,
    tenant,
    tenants,
    upstream,
    worker,
)
from faena.web.reading.declared import READINGS
from faena.web.route import Answer, Route

API: Final = "/api"


def _page(
    path: str,
    answer: Answer,
    needs: Permission | None = Permission.VIEW,
    *,
    method: str = "GET",
    is_for_tenant: bool = False,
) -> Route:
    name = f"{answer.__module__.rpartition('.')[2]}.{answer.__name__}"
    return Route(
        method=method,
        path=path,
        name=name,
        needs=needs,
        kind="page",
        answer=answer,
        is_for_tenant=is_for_tenant,
    )


def _readings() -> Iterator[Route]:
    for one in READINGS:
        yield Route(
            method=one.method,
            path=f"{API}{one.path}",
            name=one.name,
            needs=one.needs,
            kind="api",
            answer=one.answer,
            is_for_tenant=one.is_for_tenant,
            reading=one,
        )
    yield Route(
        method="GET",
        path=f"{API}/openapi.json",
        name="openapi",
        needs=Permission.VIEW,
        kind="api",
        answer=description,
        is_for_tenant=True,
    )


def _operations() -> Iterator[Route]:
    for one in OPERATIONS:
        yield Route(
            method=one.method,
            path=f"{API}{one.path}",
            name=one.name,
            needs=one.needs,
            kind="api",
            answer=one.answer_api,
            operation=one,
        )
        yield Route(
            method="POST",
            path=f"/do/{one.name}",
            name=f"do.{one.name}",
            needs=one.needs,
            kind="page",
            answer=one.answer_form,
        )


ROUTES: Final[tuple[Route, ...]] = (
    _page("/sign-in", door.sign_in_page, None),
    _page("/sign-in", door.sign_in, None, method="POST"),
    _page("/link/{secret}", door.link_page, None),
    _page("/link", door.use_link, None, method="POST"),
    _page("/oidc", oidc.begin, None),
    _page("/oidc/back", oidc.back, None),
    _page("/invitation/{secret}", invitation.invitation_page, None),
    _page("/invitation", invitation.accept, None, method="POST"),
    _page("/static/{tag}/{name}", door.static, None),
    _page("/sign-out", door.sign_out, method="POST", is_for_tenant=True),
    _page("/theme", door.theme, method="POST", is_for_tenant=True),
    _page("/language", door.language, method="POST", is_for_tenant=True),
    _page("/account", door.account_page, is_for_tenant=True),
    _page("/", overview.overview, is_for_tenant=True),
    _page("/queues", queue.queues),
    _page("/queues/{queue}", queue.queue),
    _page("/queues/{queue}/jobs", queue.jobs),
    _page("/queues/{queue}/jobs/{job:path}", job.job, is_for_tenant=True),
    _page("/dead", dead.dead),
    _page("/alerts", alert.alerts),
    _page("/costs", cost.costs),
    _page("/capacity", capacity.capacity),
    _page("/capacity/{queue}", capacity.queue),
    _page("/workers", worker.workers),
    _page("/workers/{worker:path}", worker.worker),
    _page("/upstreams", upstream.upstreams),
    _page("/upstreams/{upstream}", upstream.upstream),
    _page("/access", access.access, Permission.OWN),
    _page("/flows", flow.flows),
    _page("/flows/{queue}/{flow}", flow.flow),
    _page("/groups/{queue}/{group}", flow.group),
    _page("/schedules", schedule.schedules),
    _page("/schedules/{schedule}", schedule.schedule),
    _page("/tenants", tenants.tenants),
    _page("/tenants/{tenant:path}", tenant.tenant, is_for_tenant=True),
    _page("/search", search.search, is_for_tenant=True),
    _page("/bulk", bulk.bulks),
    _page("/bulk/new", bulk.confirm, Permission.OPERATE),
    _page("/bulk/{bulk}", bulk.bulk),
    _page("/audit", audit.audit, Permission.ADMINISTER),
    _page("/live/{page}", stream.live, is_for_tenant=True),
    _page("/now/{page}", stream.now, is_for_tenant=True),
    *_readings(),
    *_operations(),
)
