"""Every route, asked by every kind of caller: what is not in the table fails."""

from __future__ import annotations

import re

import httpx
import pytest

from faena import Faena
from faena.web.access.access import Access
from faena.web.access.account import Account, Accounts
from faena.web.access.caller import Caller
from faena.web.access.role import Permission, Role
from faena.web.application import dashboard
from faena.web.route import Route
from faena.web.routes import ROUTES
from tests.web.conftest import BASE

STRANGERS = {
    *("GET /sign-in", "POST /sign-in", "GET /link/{secret}", "POST /link"),
    *("GET /oidc", "GET /oidc/back"),
    *("GET /static/{tag}/{name}", "GET /invitation/{secret}", "POST /invitation"),
}
ONE_TENANT = {
    "GET /search",
    *("POST /sign-out", "POST /theme", "POST /language", "GET /account"),
    *("openapi", "me", "jobs.show", "jobs.explain", "dead.list", "dead.show", "tenants.show"),
    *("jobs.result", "jobs.log"),
    *("GET /queues/{queue}/jobs/{job:path}", "GET /", "GET /tenants/{tenant:path}"),
    *("GET /live/{page}", "GET /now/{page}"),
}
NEEDS = {
    Permission.VIEW: {
        *("GET /bulk", "GET /bulk/{bulk}", "views.save", "views.remove"),
        *("GET /queues", "GET /queues/{queue}", "GET /queues/{queue}/jobs"),
        *("GET /dead", "GET /tenants", "GET /schedules", "GET /schedules/{schedule}"),
        *("GET /flows", "GET /flows/{queue}/{flow}", "GET /groups/{queue}/{group}"),
        *("GET /alerts", "GET /costs", "GET /capacity", "GET /capacity/{queue}"),
        *("GET /workers", "GET /workers/{worker:path}"),
        *("GET /upstreams", "GET /upstreams/{upstream}"),
        *("about", "status", "health", "metrics", "events", "scaling.show", "queue-metrics"),
        *("queues.list", "queues.show", "queues.statistics", "queues.series", "queues.settings"),
        *("queues.shares", "queues.shards", "workers.list", "tasks.list", "tenants.list"),
        *("jobs.list", "dead.groups", "dead.stats", "redrives.list", "redrives.show"),
        *("flows.list", "flows.show", "groups.list", "groups.show"),
        *("schedules.list", "schedules.show", "upstreams.list", "upstreams.show"),
        *("features.list", "features.show", "levels.list", "budgets.list", "costs.report"),
        *("alerts.list", "advice.list", "advice.what-if"),
        *(ONE_TENANT - {"jobs.result", "jobs.log"}),
    },
    Permission.PAYLOAD: {"jobs.result", "jobs.log"},
    Permission.OPERATE: {
        *("bulk.cancel", "bulk.rerun", "bulk.promote", "bulk.retry", "bulk.resolve"),
        *("bulk.stop", "bulk.resume", "views.share", "views.unshare", "GET /bulk/new"),
        *("queues.pause", "queues.resume"),
        *("dead.retry", "dead.resolve", "dead.redrive", "dead.stop-redrive"),
        *("features.set", "features.clear", "levels.on", "levels.off"),
        *("alerts.silence", "alerts.unsilence", "alerts.test"),
        *("jobs.cancel", "jobs.rerun", "jobs.promote", "jobs.change", "queues.promote"),
        *("flows.cancel", "flows.rerun"),
        *("schedules.pause", "schedules.resume", "schedules.run"),
        *("tenants.hold", "tenants.release", "tenants.cancel-ready"),
    },
    Permission.ADMINISTER: {
        *("bulk.remove", "bulk.discard"),
        *("GET /audit", "jobs.remove", "dead.discard", "doctor", "audit.list"),
        *("schedules.create", "schedules.edit", "schedules.reset", "schedules.remove"),
        *("tenants.configure", "tenants.reset", "tenants.dedicate", "tenants.rejoin"),
        *("upstreams.panic", "upstreams.end-panic", "upstreams.forget"),
        *("features.forget", "levels.forget", "budgets.forget-totals"),
        *("queues.configure", "queues.reset", "queues.reshard", "queues.clean", "queues.drain"),
        "jobs.enqueue",
    },
    Permission.OWN: {
        *("GET /access", "users.list", "tokens.list", "queues.obliterate"),
        *("users.add", "users.invite", "users.link", "users.change", "users.password"),
        *("users.remove", "tokens.add", "tokens.remove"),
    },
}


def _name(route: Route) -> str:
    """An operation's own name, for its form and for its call of the API; else method and path."""
    is_changing = route.path.startswith(("/do/", "/api/"))
    return route.name.removeprefix("do.") if is_changing else f"{route.method} {route.path}"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_needs_what_the_table_says(route: Route) -> None:
    name = _name(route)
    listed = [needs for needs, names in NEEDS.items() if name in names]
    assert listed or name in STRANGERS, f"list {name} in the table of this test"
    assert route.needs == (listed[0] if listed else None)
    assert route.is_for_tenant == (name in ONE_TENANT)


def test_the_table_has_no_route_that_is_gone() -> None:
    names = {_name(route) for route in ROUTES}
    assert STRANGERS | {name for one in NEEDS.values() for name in one} <= names


def test_what_changes_something_is_never_asked_by_get() -> None:
    changing = [route for route in ROUTES if route.path.startswith(("/do/", "/api/"))]
    assert {route.method for route in changing if route.operation or route.kind == "page"} == {
        "POST"
    }


@pytest.mark.parametrize("role", Role)
def test_a_role_may_what_the_ones_below_it_may(role: Role) -> None:
    order = [Role.VIEWER, Role.OPERATOR, Role.ADMIN, Role.OWNER]
    steps = [Permission.VIEW, Permission.OPERATE, Permission.ADMINISTER, Permission.OWN]
    caller = Caller(name="x", role=role)
    may = [caller.may(one) for one in steps]
    assert may == [at <= order.index(role) for at in range(4)]
    assert not caller.may(Permission.PAYLOAD)


ORDER = (Permission.VIEW, Permission.OPERATE, Permission.ADMINISTER, Permission.OWN)
CALLERS = [None, *((role, tenant) for role in Role for tenant in (None, "acme"))]


def _address(route: Route) -> str:
    """The route's address, of things that are not there: nothing is changed."""
    path = re.sub(r"\{(\w+)(:path)?\}", "none", route.path)
    return f"{path}?since=never" if route.name == "events" else path


def _may(name: str, role: Role, tenant: str | None) -> bool:
    needs = next(needs for needs, names in NEEDS.items() if name in names)
    if needs is Permission.PAYLOAD or (tenant is not None and name not in ONE_TENANT):
        return False
    return ORDER.index(needs) <= [*Role].index(role)


@pytest.mark.parametrize("caller", CALLERS, ids=str)
async def test_every_route_is_open_to_those_the_table_says_and_to_nobody_else(
    app: Faena, accounts: Accounts, caller: tuple[Role, str | None] | None
) -> None:
    headers = {"sec-fetch-site": "same-origin"}
    if caller is not None:
        account = Account(name="asking", role=caller[0], tenant=caller[1])
        headers["authorization"] = f"Bearer {(await accounts.add_token(account))[1]}"
    served = dashboard(app, access=Access(), api_rate="100000/min")
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(served), base_url=BASE, headers=headers
    ) as client:
        for route in ROUTES:
            name = _name(route)
            answer = await client.request(route.method, _address(route))
            told = (route.method, route.path, answer.status_code)
            assert answer.status_code < 500, told
            if name in STRANGERS:
                continue
            if caller is None:
                assert answer.status_code in {401, 303}, told
                assert answer.status_code == 401 or answer.headers["location"] == "/sign-in", told
            else:
                assert (answer.status_code == 403) is not _may(name, *caller), told
