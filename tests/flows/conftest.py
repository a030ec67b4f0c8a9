"""An app with two queues on a server of the module, and a worker for both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from faena import Faena
from tests._support.valkey import Server
from tests._support.working import running

Working = Callable[..., AbstractAsyncContextManager[object]]


@pytest.fixture
async def app(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Faena]:
    app = Faena("flows", server.url, namespace=f"flows{abs(hash(request.node.nodeid)) % 10**9}")
    yield app
    await app.close()


@pytest.fixture
def working() -> Working:
    """Runs a worker of an app for the length of a block."""
    return running
