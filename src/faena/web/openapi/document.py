"""The whole description: every route with what it takes, answers and needs."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from faena.contrib.problem import MEDIA_TYPE
from faena.web.openapi.schema import PLACE, Schema, Schemas, docs_of
from faena.web.operation.operation import Operation
from faena.web.reading.reading import Reading

_PART: Final = re.compile(r"\{(\w+)\}")
_PARTS: Final[Mapping[str, str]] = {
    "queue": "The name of a queue.",
    "job": "The id of a job.",
    "tenant": "The name of a tenant.",
}
_ALWAYS: Final[Mapping[str, str]] = {
    "401": "Neither a session nor a token that is known.",
    "403": "The caller lacks the permission, or another site made a browser send this.",
    "404": "There is no such queue, job, …; also what belongs to another tenant.",
    "422": "A parameter is not valid: the answer says which, and what it must be.",
    "429": "Too many requests: Retry-After says when to come again.",
    "503": "The broker does not answer.",
}
_OF_CHANGES: Final[Mapping[str, str]] = {
    "409": "Its state does not permit it, or it was changed meanwhile.",
    "412": "It is no longer as the ETag of If-Match says.",
    "413": "The request is too large.",
}
_PROBLEM: Final[Schema] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "For programs: it does not change."},
        "detail": {"type": "string", "description": "For people."},
    },
    "required": ["title", "status", "code", "detail"],
}


def document(
    server: str, readings: Iterable[Reading], operations: Iterable[Operation]
) -> dict[str, Any]:
    """The description of an API that is at this address."""
    schemas, paths = Schemas(), dict[str, dict[str, Any]]()
    for one in readings:
        paths.setdefault(one.path, {})[one.method.lower()] = _reading(one, schemas)
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas)
    schemas.components["Problem"] = _PROBLEM
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Faena",
            "summary": "The admin API: what the dashboard and the command line can do.",
            "version": importlib.metadata.version("faena"),
        },
        "servers": [{"url": server}],
        "security": [{"token": []}, {"session": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-faena"},
            },
        },
    }


def _reading(one: Reading, schemas: Schemas) -> dict[str, Any]:
    tag = {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}}
    tag["description"] = "ETags that the caller knows: then the answer may be 304."
    return _told(one) | {
        "parameters": [*_parts(one.path), *_query(one.arguments), tag],
        "responses": {
            "200": {
                "description": one.text,
                "headers": {"ETag": {"schema": {"type": "string"}}},
                "content": {
                    name: {"schema": schemas.of(one.answers)}
                    for name in (one.media_type, *one.other_media_types)
                },
            },
            "304": {"description": "It is as the caller knows it."},
            **_problems(_ALWAYS),
        },
    }


def _operation(one: Operation, schemas: Schemas) -> dict[str, Any]:
    match = {"name": "If-Match", "in": "header", "schema": {"type": "string"}}
    match["description"] = "Change it only if it still has this ETag."
    headers = [match] if one.guards is not None else []
    (ref,), found = msgspec.json.schema_components(
        [one.arguments], ref_template=f"{PLACE}{{name}}Of{_camel(one.name)}"
    )
    for name, schema in found.items():
        told = docs_of(one.arguments) if name == one.arguments.__name__ else {}
        for field, text in told.items():
            if field in schema.get("properties", {}):
                schema["properties"][field]["description"] = text
        schemas.components[f"{name}Of{_camel(one.name)}"] = schema
    record = {"description": "The record in the audit trail.", "schema": {"type": "string"}}
    return _told(one) | {
        "parameters": [*_parts(one.path), *headers],
        "requestBody": {"content": {"application/json": {"schema": ref}}},
        "responses": {
            "200": {
                "description": "It is done.",
                "headers": {"X-Audit-Record": record},
                "content": {"application/json": {"schema": schemas.of(one.answers)}},
            },
            **_problems({**_ALWAYS, **_OF_CHANGES}),
        },
    }


def _told(one: Reading | Operation) -> dict[str, Any]:
    return {
        "operationId": one.name,
        "summary": one.text,
        "tags": [one.name.partition(".")[0]],
        "x-permission": one.needs.value,
    }


def _parts(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARTS.get(name, f"Which {name}."),
            "schema": {"type": "string"},
        }
        for name in _PART.findall(path)
    ]


def _query(arguments: type[msgspec.Struct]) -> list[dict[str, Any]]:
    told = docs_of(arguments)
    (_,), found = msgspec.json.schema_components([arguments], ref_template="{name}")
    parameters: list[dict[str, Any]] = []
    for name, schema in found[arguments.__name__].get("properties", {}).items():
        parameters.append({"name": name, "in": "query", "schema": _inlined(schema, found)})
        if name in told:
            parameters[-1]["description"] = told[name]
    return parameters


def _inlined(schema: Any, found: Mapping[str, Any]) -> Any:
    """Without references, which only answers have."""
    if isinstance(schema, list):
        return [_inlined(one, found) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(found[schema["$ref"]], found)
    return {name: _inlined(one, found) for name, one in schema.items()}


def _problems(words: Mapping[str, str]) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{PLACE}Problem"}}}
    return {status: {"description": one, "content": content} for status, one in words.items()}


def _camel(name: str) -> str:
    return "".join(part.title() for part in re.split(r"[.\-]", name))
