"""What a worker answers: `/health`, `/ready`, `/health/redis`, `/metrics`, `/scaling`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from faena.errors import ConfigError
from faena.telemetry.metrics.exposition import check_extra, written
from faena.telemetry.metrics.family import families
from faena.telemetry.metrics.metric import Facts
from faena.worker.serve.channel import About
from faena.worker.serve.diagnosis import examine
from faena.worker.serve.http_server import Response, in_json
from faena.worker.serve.recent import Recent
from faena.worker.serve.request import Request, prefers_openmetrics
from faena.worker.serve.team import Look, Team
from faena.worker.serve.totals import Totals
from faena.worker.serve.vitals import Page

_PAGE_S: Final = 6.0
"""Longer than a worker waits for the broker's numbers; Prometheus waits ten seconds."""

_page = msgspec.msgpack.Decoder(Page)


class Endpoints:
    """The routes of one server."""

    def __init__(self, look: Look, totals: Totals) -> None:
        self._look, self._totals = look, totals
        self._about: About | None = None
        self._diagnosis = Recent(lambda: examine(look()))
        self._metrics = {
            modern: Recent(partial(self._make_metrics, is_modern=modern))
            for modern in (False, True)
        }
        self._scaling = Recent(partial(self._ask_any, "scaling"))
        self._routes: Mapping[str, Callable[[Request], Awaitable[Response]]] = {
            "/health": self._tell_health,
            "/health/redis": self._tell_broker,
            "/ready": self._tell_ready,
            "/metrics": self._tell_metrics,
            "/scaling": self._tell_scaling,
        }

    async def answer(self, request: Request) -> Response:
        """The answer to a request."""
        route = self._routes.get(request.path)
        if route is None:
            return in_json(404, {"problem": "nothing is here", "paths": list(self._routes)})
        return await route(request)

    async def _tell_health(self, _: Request) -> Response:
        seen = await self._diagnosis.get()
        told: dict[str, Any] = {
            "status": seen.status,
            "redis": seen.redis,
            "queues": seen.queues,
            **seen.servers,
            "latency_ms": seen.latency_ms,
            "problems": seen.problems,
            "wanted": seen.wanted,
            "processes": [one.to_dict() for one in seen.processes],
        }
        return in_json(_code(is_ok=seen.is_ok), told)

    async def _tell_broker(self, _: Request) -> Response:
        seen = await self._diagnosis.get()
        problem = seen.broker or next(iter(seen.problems), None)
        is_ok = seen.redis == "ok"
        told = {
            "status": seen.redis,
            "latency_ms": seen.latency_ms,
            "problem": None if is_ok else problem,
        }
        return in_json(_code(is_ok=is_ok), told)

    async def _tell_ready(self, _: Request) -> Response:
        team = self._look()
        is_ready = team.state == "serving" and len(team.members) >= team.wanted
        told = {
            "status": "ready" if is_ready else _unready(team),
            "serving": len(team.members),
            "wanted": team.wanted,
        }
        return in_json(_code(is_ok=is_ready), told)

    async def _tell_metrics(self, request: Request) -> Response:
        return await self._metrics[prefers_openmetrics(request.accept)].get()

    async def _tell_scaling(self, _: Request) -> Response:
        found = await self._scaling.get()
        return found or in_json(503, {"problem": "no worker process answers"})

    # what worker processes make

    async def _make_metrics(self, *, is_modern: bool) -> Response:
        try:
            check_extra()
        except ConfigError as error:
            return in_json(501, {"problem": str(error)})
        found = await self._ask_any("metrics", is_modern=is_modern)
        return found or self._own_metrics(is_modern=is_modern)

    def _own_metrics(self, *, is_modern: bool) -> Response:
        """Without the broker's numbers, which only a worker process can ask for."""
        about = self._about
        if about is None:
            return in_json(503, {"problem": "no worker process has served yet"})
        facts = Facts(measured=self._totals.together(), tenants=about.tenants)
        body, kind = written(
            about.app, families(facts, aliases=about.aliases), openmetrics=is_modern
        )
        return Response(200, body, kind)

    async def _ask_any(self, what: str, *, is_modern: bool = False) -> Response | None:
        """What the process has made that was heard last; None if it does not in time."""
        members = self._look().members
        self._about = next((one.about for one in members if one.about), self._about)
        if not members:
            return None
        member = max(members, key=lambda one: one.heard)
        try:
            body = await member.ask(
                what, _PAGE_S, is_modern=is_modern, all_of=self._totals.together()
            )
        except TimeoutError:
            return None
        if body is None:
            return in_json(501, {"problem": f"/{what} is not available"})
        page = _page.decode(body)
        return Response(page.status, page.body, page.content_type)


def _code(*, is_ok: bool) -> int:
    return 200 if is_ok else 503


def _unready(team: Team) -> str:
    return "starting" if team.state == "serving" else team.state
