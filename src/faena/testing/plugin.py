"""Fixtures for pytest. In the top conftest.py:

    pytest_plugins = ["faena.testing.plugin"]

    @pytest.fixture
    def faena_app():
        return app

Tests then ask for `faena_harness` (async) or `faena_sync_harness`.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

from faena.app import Faena
from faena.testing.harness import Harness, SyncHarness, harness, sync_harness
from faena.testing.server import shared_url


def _async_fixture(function: Any) -> Any:
    """pytest-asyncio, in its strict mode, wants its own decorator; others take the plain one."""
    try:
        return importlib.import_module("pytest_asyncio").fixture(function)
    except ImportError:
        return pytest.fixture(function)


@pytest.fixture(scope="session")
def faena_url() -> str:
    """The server of the tests; define a fixture of this name to use another."""
    return shared_url()


@pytest.fixture
def faena_app() -> Faena:
    """The app under test, which only the user's own conftest.py knows."""
    raise pytest.UsageError("faena.testing.plugin needs a fixture faena_app that returns the app")


@_async_fixture
async def faena_harness(faena_app: Faena, faena_url: str) -> AsyncGenerator[Harness]:
    """The app on a broker, a namespace and a clock of the test's own."""
    async with harness(faena_app, url=faena_url) as tested:
        yield tested


@pytest.fixture
def faena_sync_harness(faena_app: Faena, faena_url: str) -> Generator[SyncHarness]:
    """The same for tests without an event loop."""
    with sync_harness(faena_app, url=faena_url) as tested:
        yield tested
