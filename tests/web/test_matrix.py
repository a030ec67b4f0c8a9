"""Every route, asked by every kind of caller: what is not in the table fails."""

from __future__ import annotations

import pytest

from faena.web.access.caller import Caller
from faena.web.access.role import Permission, Role
from faena.web.route import Route
from faena.web.routes import ROUTES

STRANGERS = {
    *("GET /sign-in", "POST /sign-in", "GET /link/{secret}", "POST /link"),
    "GET /static/{tag}/{name}",
}
ONE_TENANT = {
    *("POST /sign-out", "POST /theme", "POST /language", "GET /account"),
    "GET /queues/{queue}/jobs/{job:path}",
}
NEEDS = {
    Permission.VIEW: {
        *("GET /", "GET /queues", "GET /queues/{queue}", "GET /queues/{queue}/jobs"),
        *("GET /live/{page}", "GET /now/{page}", "GET /dead"),
        *("GET /workers", "GET /workers/{worker:path}"),
        *("GET /upstreams", "GET /upstreams/{upstream}"),
        *ONE_TENANT,
    },
    Permission.OPERATE: {
        *("queues.pause", "queues.resume"),
        *("dead.retry", "dead.resolve", "dead.redrive", "dead.stop-redrive"),
        *("features.set", "features.clear", "levels.on", "levels.off"),
        *("alerts.silence", "alerts.unsilence", "alerts.test"),
        *("jobs.cancel", "jobs.rerun", "jobs.promote", "jobs.change"),
    },
    Permission.ADMINISTER: {
        *("GET /audit", "jobs.remove", "dead.discard"),
        *("upstreams.panic", "upstreams.end-panic", "upstreams.forget"),
        *("features.forget", "levels.forget", "budgets.forget-totals"),
    },
    Permission.OWN: set[str](),
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
