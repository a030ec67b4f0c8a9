"""Two programs of one harness, as in the middle of a deployment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from faena import Faena
from faena.testing import Harness


@asynccontextmanager
async def deployed(app: Faena, h: Harness) -> AsyncIterator[Harness]:
    """Another program on the same queues, as after a deployment."""
    with app.override(url=_url(h.app), namespace=h.namespace, clock=h.clock):
        try:
            yield Harness(app, h.clock, h.namespace)
        finally:
            await app.close()


def _url(app: Faena) -> str:
    url = app._links.connection.url
    assert url is not None
    return url
