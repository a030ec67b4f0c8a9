"""A small HTTP interface to an app's tasks: enqueue a job, read a job, health.

    web.mount("/jobs", router(app, tasks=[send], authorize=authorize, tenant=tenant_of))

    POST /mail/send            the payload as JSON → 202 with the job's id and its address
    GET  /mail/JOB             its state, and its result once it is completed
    GET  /health               200 or 503; no names, nobody is asked who they are

Only the given tasks can be reached. The tenant comes from a callable that reads the request's
credential, never from the body; jobs of other tenants or other tasks are not found.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from faena.app import Faena
from faena.contrib.problem import problem, problem_of
from faena.errors import ConfigError, FaenaError, shown
from faena.job import JobView
from faena.options import Order
from faena.states import State
from faena.task import Task
from faena.values.keywords import known_keywords
from faena.values.names import check_label

Authorize = Callable[[Request], Awaitable[Any] | Any]
"""Whether a request is allowed: a false value, or an HTTPException, refuses it."""

TenantOf = Callable[[Request], Awaitable[str | None] | str | None]

_KEY_HEADER: Final = "idempotency-key"
_HEALTH_S: Final = "2s"


@known_keywords("router")
def router(
    app: Faena,
    *,
    tasks: Iterable[Task[Any, Any]] | None = None,
    authorize: Authorize | None = None,
    tenant: TenantOf | None = None,
) -> Router:
    """An ASGI application to be mounted; see the module for its routes.

    `tasks` are those that may be reached and `authorize` decides who may: both must be given.
    Without `tenant` jobs have none.
    """
    if authorize is None or not callable(authorize):
        raise ConfigError(
            "authorize must be a function that takes a request and returns whether it is "
            f"allowed, got {shown(authorize)}",
            field="authorize",
        )
    routes = _Routes(_allowed(app, tasks), app, authorize, tenant)
    return Router(
        routes=[
            Route("/health", routes.health, methods=["GET"]),
            Route("/{queue}/{task}", routes.enqueue, methods=["POST"]),
            Route("/{queue}/{job:path}", routes.look, methods=["GET"]),
        ]
    )


def _allowed(app: Faena, tasks: Any) -> dict[tuple[str, str], Task[Any, Any]]:
    given = list(tasks) if isinstance(tasks, list | tuple | set | frozenset) else []
    if not given or not all(isinstance(one, Task) and one.app is app for one in given):
        raise ConfigError(
            f"tasks must be a list of the app's tasks to expose, got {shown(tasks)}",
            field="tasks",
        )
    for task in given:
        if app.queues[task.queue].options.order is Order.KEY:
            raise ConfigError(
                f"tasks must not have jobs that need a key, got {task.queue}/{task.name}: its "
                f"queue has order 'key', and a request cannot give a key",
                field="tasks",
                value=f"{task.queue}/{task.name}",
            )
    return {(task.queue, task.name): task for task in given}


class _Routes:
    def __init__(
        self,
        tasks: dict[tuple[str, str], Task[Any, Any]],
        app: Faena,
        authorize: Authorize,
        tenant: TenantOf | None,
    ) -> None:
        self._tasks = tasks
        self._app = app
        self._authorize = authorize
        self._tenant = tenant

    async def health(self, _request: Request) -> Response:
        """Whether jobs are taken in, and nothing else."""
        is_ok = (await self._app.health(timeout=_HEALTH_S)).is_ok
        status = {"status": "ok" if is_ok else "unavailable"}
        return _json(200 if is_ok else 503, status)

    async def enqueue(self, request: Request) -> Response:
        """Take in one job."""
        return await self._answer(request, self._enqueue)

    async def look(self, request: Request) -> Response:
        """Tell of one job."""
        return await self._answer(request, self._look)

    async def _answer(
        self, request: Request, do: Callable[[Request, str | None], Awaitable[Response]]
    ) -> Response:
        try:
            if not await _called(self._authorize, request):
                return problem(401, "unauthorized", "the request has no valid credential")
            tenant = await _called(self._tenant, request) if self._tenant else None
            if tenant is not None:
                check_label("tenant", tenant)
            return await do(request, tenant)
        except HTTPException as error:
            return problem(error.status_code, "refused", str(error.detail))
        except FaenaError as error:
            answer = problem_of(error)
            if answer is None:
                raise
            return answer

    async def _enqueue(self, request: Request, tenant: str | None) -> Response:
        task = self._tasks.get((request.path_params["queue"], request.path_params["task"]))
        if task is None:
            return _not_found()
        body = await _body(request, task.handler.payload_limit)
        if body is None:
            words = f"the payload must be at most {task.handler.payload_limit} bytes"
            return problem(413, "too_large", words)
        try:
            payload = (msgspec.json.decode(body),) if body or task.handler.payload else ()
        except msgspec.DecodeError:
            return problem(400, "malformed", "the body must be JSON")
        options: dict[str, Any] = {} if tenant is None else {"tenant": tenant}
        key = request.headers.get(_KEY_HEADER)
        if key is not None:
            options["id"] = _id_of(tenant, task, check_label(_KEY_HEADER, key))
        receipt = await task.enqueue(*payload, **options)
        facts = {"id": receipt.id, "status": receipt.status, "state": receipt.state}
        where = f"{request.scope.get('root_path', '')}/{task.queue}/{receipt.id}"
        return _json(202, facts, {"Location": where})

    async def _look(self, request: Request, tenant: str | None) -> Response:
        queue, job = request.path_params["queue"], request.path_params["job"]
        if not any(name == queue for name, _ in self._tasks):
            return _not_found()
        view = await self._app.queues[queue].handle(job).view()
        if view is None or view.tenant != tenant or (queue, view.task) not in self._tasks:
            return _not_found()
        return _json(200, _facts(view))


def _facts(view: JobView) -> dict[str, Any]:
    """What a caller is told: the words of an error may hold what only operators should see."""
    facts: dict[str, Any] = {"id": view.id, "task": view.task, "state": view.state}
    facts["attempts_made"] = view.attempts_made
    if view.state is State.COMPLETED:
        facts["result"] = msgspec.Raw(view.result or b"null")
    elif view.errors:
        facts["error"] = {"name": view.errors[-1].name, "code": view.errors[-1].code}
    return facts


def _id_of(tenant: str | None, task: Task[Any, Any], key: str) -> str:
    """The same for the same caller, task and key; what others choose cannot collide with it."""
    words = "\0".join((tenant or "", task.queue, task.name, key))
    return f"web-{hashlib.blake2b(words.encode(), digest_size=16).hexdigest()}"


async def _called(function: Callable[[Request], Any], request: Request) -> Any:
    answer = function(request)
    return await answer if inspect.isawaitable(answer) else answer


async def _body(request: Request, most: int) -> bytes | None:
    """The body, or None as soon as it is too large."""
    parts, size = list[bytes](), 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)


def _not_found() -> Response:
    return problem(404, "not_found", "there is no such task or job")


def _json(status: int, facts: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(facts), status, headers, media_type="application/json")
