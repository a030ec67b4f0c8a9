"""Puts the dashboard beside a program that cannot mount one, such as Django's."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from faena.errors import ConfigError, shown
from faena.web.application import Dashboard

PATH: Final = "/admin/queues"
API: Final = "/admin/api"


def beside(
    program: ASGIApp, dashboard: Dashboard, *, path: str = PATH, api: str | None = None
) -> ASGIApp:
    """An application that answers requests below `path` with the dashboard, all others with the
    program; below `api`, if it is given, with the API alone.

        application = beside(get_asgi_application(), dashboard(app, access=Access()))

    Its lifespan is the dashboard's: the program has none, or is started elsewhere.
    """
    mounted: list[tuple[str, ASGIApp]] = [(_path("path", path), dashboard)]
    if api is not None:
        mounted.append((_path("api", api), dashboard.api))

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await dashboard(scope, receive, send)
            return
        root, where = scope.get("root_path", ""), _below(scope)
        for begin, one in mounted:
            if where == begin or where.startswith(f"{begin}/"):
                inner = {**scope, "root_path": f"{root}{begin}"}
                await one(inner, receive, send)
                return
        await program(scope, receive, send)

    return application


def _below(scope: Scope) -> str:
    """The path below where the program itself is."""
    path: str = scope.get("path", "")
    root = scope.get("root_path", "")
    return path.removeprefix(root) if root else path


def _path(name: str, given: str) -> str:
    if not given.startswith("/") or given.endswith("/") or "//" in given:
        raise ConfigError(f"{name} must be a path such as {PATH}, got {shown(given)}", field=name)
    return given
