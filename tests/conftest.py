"""What every test may ask for, and the guards that watch every test.

One server per test process, on a Unix socket. A test gets a namespace of its own and cleans up what
it made: keys without a TTL that are still there afterwards fail it, and so do asyncio tasks. Tests
that cannot clean up have a second server. Warnings as errors, random order and the time limit are
in pyproject.toml.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import core, settings

from faena import Faena
from faena.engine import Address, Wire
from faena.testing import Harness, harness
from tests._support import guard
from tests._support.longest_first import longest_first
from tests._support.rig import Rig
from tests._support.search import IS_FULL, SEED, searching
from tests._support.valkey import Server
from tests._support.working import Working, obliterate, serving

_numbers = itertools.count(1)

settings.register_profile("suite", searching(100))
settings.load_profile("suite")


def pytest_configure() -> None:
    """A shell starts what runs in its background with SIGINT ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if IS_FULL:
        core.global_force_seed = SEED
    guard.begin()
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays to the end: no search for garbage needs to look through it."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(trylast=True)  # when they have been shuffled
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = longest_first(items, processes)


def pytest_itemcollected(item: pytest.Item) -> None:
    if IS_FULL:  # a full search takes hours
        item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(scope="session")
def valkey() -> Iterator[Server]:
    """The server shared by the tests of this process: ask for `wire` or `rig` rather."""
    with Server("appendonly no", unix=True) as server:
        yield server


@pytest.fixture(scope="session")
def _guard(valkey: Server) -> Iterator[redis.Redis]:
    with valkey.client() as client:
        yield client


@pytest.fixture
def namespace(valkey: Server) -> str:
    """A prefix that no other test uses."""
    return f"test{next(_numbers)}"


@pytest.fixture
async def wire(valkey: Server) -> AsyncIterator[Wire]:
    wire = Wire(Address.parse(valkey.url))
    yield wire
    await wire.close()


@pytest.fixture
async def rig(wire: Wire, namespace: str) -> AsyncIterator[Rig]:
    """A queue with a clock of its own, obliterated afterwards."""
    rig = Rig(wire, namespace)
    yield rig
    await rig.obliterate()


@pytest.fixture(scope="session")
def _server() -> Iterator[Server]:
    with Server("appendonly no", unix=True) as server:
        yield server


@pytest.fixture
def server(_server: Server) -> Server:
    """An empty server for tests that leave keys behind; one that is not killed or configured."""
    with _server.client() as client:
        client.flushall()
    return _server


@pytest.fixture(scope="session")
def _tcp_server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def tcp_server(_tcp_server: Server) -> Iterator[Server]:
    """The same with a port and an AOF: for proxies, users and durability."""
    yield _tcp_server
    with _tcp_server.client() as client:
        client.flushall()
        client.function_flush()
        for user in set(client.acl_users()) - {"default"}:
            client.acl_deluser(user)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where sockets fit, those of the worker's notes among them."""
    directory = Path(tempfile.mkdtemp(prefix="fae-"))
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
async def app(valkey: Server, namespace: str) -> AsyncIterator[Faena]:
    """A program's app; a real one has its URL in FAENA_URL, or none and an embedded server."""
    app = Faena("shop", valkey.url, namespace=namespace)
    yield app
    await obliterate(app)


@pytest.fixture
def working(app: Faena) -> Working:
    """`async with working():` has a worker serve the app's queues, or another app's."""
    return lambda served=app: serving(served)


@pytest.fixture
async def h(app: Faena, valkey: Server) -> AsyncIterator[Harness]:
    """The app with a clock that stands still; `await h.drain()` runs what is ready."""
    async with harness(app, url=valkey.url) as tested:
        yield tested


@pytest.fixture(autouse=True)
def _no_leaked_keys(request: pytest.FixtureRequest) -> Iterator[None]:
    if "valkey" not in request.fixturenames:
        yield
        return
    client: redis.Redis = request.getfixturevalue("_guard")
    yield
    leaked = sorted(name for name in client.scan_iter(count=1000) if client.pttl(name) == -1)
    client.flushall()
    assert not leaked, f"keys without a TTL must not outlive a test, got {leaked}"


@pytest.fixture(autouse=True)
def _no_leaked_tasks(request: pytest.FixtureRequest) -> None:
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("_loop_left_empty")


@pytest.fixture
async def _loop_left_empty() -> AsyncIterator[None]:
    yield
    await asyncio.sleep(0)  # a task that was cancelled in the last turn ends in this one
    leaked = asyncio.all_tasks() - {asyncio.current_task()}
    assert not leaked, f"tasks must not outlive a test, got {leaked}"
