"""The description of the API in OpenAPI, at `/api/openapi.json`.

FastAPI derives it from the routes. What they have in common is added here: errors are problems, and
are sent as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from apps.campotech.api.problem import KIND

_ABOUT: Final = (
    "CampoTech's back end. Programs of an organisation show its token. What they send in is stored "
    "with its job in one transaction, and 202 says so. Errors are problems (RFC 9457)."
)
_UNUSED: Final = ("HTTPValidationError", "ValidationError")
"""FastAPI's own errors, which no route here answers with."""

_SHOWN: Final = {"/api/v1/": "organization", "/api/admin/": "administrator"}
"""Whose token the routes below a path need."""
_SCHEMES: Final = {name: {"type": "http", "scheme": "bearer"} for name in _SHOWN.values()}


def describe(web: FastAPI) -> None:
    """Have an application describe itself in this way."""

    def made() -> dict[str, Any]:
        if web.openapi_schema is None:
            web.openapi_schema = _made(web)
        return web.openapi_schema

    web.openapi = made


def _made(web: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=web.title, version=web.version, description=_ABOUT, routes=web.routes
    )
    for answer in _problems(schema):
        (content,) = answer["content"].values()
        if content["schema"] == {"$ref": "#/components/schemas/ProblemContent"}:
            answer["content"] = {KIND: content}
    for name in _UNUSED:
        schema["components"]["schemas"].pop(name, None)
    schema["components"]["securitySchemes"] = _SCHEMES
    for path, operations in schema["paths"].items():
        for prefix, scheme in _SHOWN.items():
            if path.startswith(prefix):
                for operation in operations.values():
                    operation["security"] = [{scheme: []}]
    return schema


def _problems(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Answers that say no."""
    for path in schema["paths"].values():
        for operation in path.values():
            for status, answer in operation["responses"].items():
                if status >= "400":
                    yield answer
