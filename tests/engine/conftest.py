"""A server of the test's own, which it may stop, and a wire to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from faena.engine import Address, Wire
from tests._support.valkey import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
async def wire(server: Server) -> AsyncIterator[Wire]:
    wire = Wire(Address.parse(server.url))
    yield wire
    await wire.close()
