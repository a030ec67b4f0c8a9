"""`faena dev`: the worker follows the source code, on an embedded server of its own."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from tests._support.command import Service, is_alive
from tests._support.embedded import sweep
from tests._support.eventually import eventually
from tests._support.probe import answers
from tests._support.valkey import free_port

FRESH = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Bytecode knows its source by size and second: two changes in one second look the same to it."""

CODE = """
from faena import Faena

app = Faena("shop")
mail = app.queue("mail")


@mail.task
async def version() -> int:
    return {version}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
async def task(home: Path) -> AsyncIterator[Any]:
    """The producer's side of the app that is being developed."""
    app = Faena("shop", directory=home / ".faena")
    queue = app.queue("mail")

    @queue.task
    async def version() -> int:
        return 0

    try:
        yield version
        await app.close()
    finally:
        sweep(home / ".faena")


async def test_a_change_is_served_by_a_new_worker_and_a_broken_one_changes_nothing(
    home: Path, task: Any, tmp_path: Path
) -> None:
    shop = home / "shop.py"
    shop.write_text(CODE.format(version=1))
    port = free_port()
    args = ("dev", "shop:app", "--serve", str(port))
    with Service(*args, log=tmp_path / "log", cwd=home, **FRESH) as service:
        await eventually(lambda: service.serving() == 1)
        await eventually(lambda: answers(port, "/health", 200))
        assert await _ask(task) == 1
        shop.write_text(CODE.format(version=2))
        await eventually(lambda: service.serving() == 2)
        await eventually(lambda: "every worker has been replaced" in service.log())
        assert await _ask(task) == 2
        assert await answers(port, "/ready", 200)
        shop.write_text("app = \n")
        await eventually(lambda: "could not replace all workers" in service.log())
        assert "faena: cannot import shop: SyntaxError" in service.log()
        assert await _ask(task) == 2
        done = [line for line in service.log().splitlines() if "mail/version" in line]
        form = r"\d\d:\d\d:\d\d\.\d{3} INFO     mail/version job \S+ attempt 1 after \d+ ms done"
        assert all(re.fullmatch(form, line) for line in done)
        assert len(done) == 3
        children = service.children()
        service.send(signal.SIGINT)
        code, _ = await service.ended()
    assert code == 0, service.log()
    assert not any(map(is_alive, children))


async def test_code_that_cannot_start_is_waited_for(home: Path, task: Any, tmp_path: Path) -> None:
    shop = home / "shop.py"
    shop.write_text("import nothing_of_that_name\n")
    with Service("dev", "shop:app", "--json", log=tmp_path / "log", cwd=home, **FRESH) as service:
        await eventually(lambda: "waiting for a change" in service.log())
        shop.write_text(CODE.format(version=3))
        await eventually(lambda: service.serving() == 1)
        assert await _ask(task) == 3
        service.send(signal.SIGTERM)
        code, out = await service.ended()
    assert (code, out) == (0, '{"code":0}\n')


async def _ask(task: Any) -> int:
    return await (await task.enqueue()).handle.result(timeout="60s")
