"""The addresses of the control API, and what wrong requests are told."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from apps.sandbox.control.act import Acts
from apps.sandbox.control.telling import Telling
from apps.sandbox.fault import Fault
from apps.sandbox.ledger import Entry
from apps.sandbox.stand_in import Refused, StandIn
from apps.sandbox.webhook import Full

Handler = Callable[[Request], Awaitable[Response]]

_MOST: Final = 10_000
"""Entries of one answer, unless less are asked for."""


def control_routes(
    services: Mapping[str, StandIn],
    acts: Mapping[str, Acts],
    telling: Telling,
    environment: Callable[[], Mapping[str, str]],
) -> Sequence[BaseRoute]:
    """For some services; those without `acts` have ledgers and faults only."""
    control = _Control(services, acts, telling, environment)
    one = "/sandbox/{service}"
    return [
        _route("GET", "/sandbox/environment", control.show_environment),
        _route("GET", "/sandbox/counts", control.count_all),
        _route("GET", "/sandbox/webhooks", control.show_webhooks),
        _route("PUT", "/sandbox/webhooks", control.set_webhooks),
        _route("GET", f"{one}/ledger", control.show_ledger),
        _route("GET", f"{one}/counts", control.count),
        _route("POST", f"{one}/faults", control.add_fault),
        _route("DELETE", f"{one}/faults", control.clear_faults),
        _route("POST", f"{one}/{{verb}}", control.act),
        _route("GET", f"{one}/{{things}}", control.show_things),
    ]


def _route(method: str, path: str, handler: Handler) -> Route:
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except LookupError as error:
            return _json({"error": str(error.args[0])}, 404)
        except Full as error:
            return _json({"error": str(error)}, 503)
        except (msgspec.MsgspecError, ValueError, TypeError, Refused) as error:
            return _json({"error": str(error)}, 422)

    return Route(path, answer, methods=[method])


class _Control:
    def __init__(
        self,
        services: Mapping[str, StandIn],
        acts: Mapping[str, Acts],
        telling: Telling,
        environment: Callable[[], Mapping[str, str]],
    ) -> None:
        self._services, self._acts, self._telling = services, acts, telling
        self._environment = environment

    async def show_webhooks(self, _request: Request) -> Response:
        """Where they go, and what became of them."""
        courier = self._telling.courier
        told = {"waiting": courier.waiting, "taken": courier.taken, "given_up": courier.given_up}
        return _json({"urls": self._telling.urls, **told})

    async def show_environment(self, _request: Request) -> Response:
        """What a program must be told."""
        return _json(self._environment())

    async def count_all(self, _request: Request) -> Response:
        """Of all services."""
        return _json({name: one.ledger.counts() for name, one in self._services.items()})

    async def set_webhooks(self, request: Request) -> Response:
        """Where news are told."""
        self._telling.set(msgspec.json.decode(await request.body(), type=dict[str, str]))
        return Response(status_code=204)

    async def show_ledger(self, request: Request) -> Response:
        """Those requests that are asked for."""
        wanted, ledger = request.query_params, self._service(request).ledger
        operation, outcome = wanted.get("operation"), wanted.get("outcome")

        def is_wanted(one: Entry) -> bool:
            return operation in (None, one.operation) and outcome in (None, one.outcome)

        found = filter(is_wanted, ledger.after(_number(request, "after", 0)))
        return _json([*islice(found, _number(request, "limit", _MOST))])

    async def count(self, request: Request) -> Response:
        """Of one service."""
        return _json(self._service(request).ledger.counts())

    async def add_fault(self, request: Request) -> Response:
        """Play one from now on."""
        faults = self._service(request).faults
        given = msgspec.json.decode(await request.body(), type=dict[str, Any])
        lasts = given.pop("lasts", None)
        if lasts is not None and float(lasts) <= 0:
            raise ValueError(f"lasts must be more than 0, got {lasts}")
        until = None if lasts is None else time.monotonic() + float(lasts)
        faults.add(Fault(**given, until=until))
        return Response(status_code=201)

    async def clear_faults(self, request: Request) -> Response:
        """Play none."""
        self._service(request).faults.clear()
        return Response(status_code=204)

    async def act(self, request: Request) -> Response:
        """Something happens."""
        acts, verb = self._acts_of(request), request.path_params["verb"]
        if verb not in acts.verbs:
            raise LookupError(f"verb must be one of {', '.join(sorted(acts.verbs))}, got {verb!r}")
        done = await acts.act(verb, await request.body())
        return _json({} if done is None else done)

    async def show_things(self, request: Request) -> Response:
        """What a service has."""
        acts, things = self._acts_of(request), request.path_params["things"]
        if things not in acts.things:
            known = ", ".join(sorted({"ledger", "counts", *acts.things}))
            raise LookupError(f"what is shown must be one of {known}, got {things!r}")
        after, limit = _number(request, "after", 0), _number(request, "limit", _MOST)
        return _json([*islice(acts.things[things](), after, after + limit)])

    def _service(self, request: Request) -> StandIn:
        name = request.path_params["service"]
        if name not in self._services:
            known = ", ".join(self._services)
            raise LookupError(f"service must be one of {known}, got {name!r}")
        return self._services[name]

    def _acts_of(self, request: Request) -> Acts:
        return self._acts.get(self._service(request).name, Acts())


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, str(default))
    if not (given.isascii() and given.isdigit() and len(given) <= 18):
        raise ValueError(f"{name} must be a whole number from 0, got {given!r}")
    return int(given)


def _json(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
