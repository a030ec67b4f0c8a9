"""Answers with the description of the API."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from starlette.responses import Response

from faena.web.openapi.document import document
from faena.web.operation.declared import OPERATIONS
from faena.web.reading.declared import READINGS
from faena.web.reading.reading import is_among, tag_of
from faena.web.route import Visit


async def description(visit: Visit) -> Response:
    """What the API can do, for programs that write clients."""
    body = _written(visit.request.url.path.rpartition("/")[0])
    tag = tag_of(body)
    if is_among(tag, visit.request.headers.get("if-none-match")):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, headers={"ETag": tag}, media_type="application/json")


@lru_cache(maxsize=8)
def _written(server: str) -> bytes:
    return msgspec.json.encode(document(server, READINGS, OPERATIONS))
