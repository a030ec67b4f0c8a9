"""Programs that `faena worker` serves in processes of its own; a file names its `PROGRAM`."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests._support.ledger import Ledger
from tests._support.valkey import Server


@pytest.fixture
def environ(server: Server, tmp_path: Path) -> dict[str, str]:
    return {"FAENA_URL": server.url, "LEDGER": str(tmp_path / "ledger")}


@pytest.fixture
def ledger(environ: dict[str, str]) -> Iterator[Ledger]:
    ledger = Ledger(environ["LEDGER"])
    yield ledger
    ledger.close()


@pytest.fixture
async def program(
    request: pytest.FixtureRequest, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Any]:
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    program = importlib.import_module(request.module.PROGRAM)
    with program.app.override(url=environ["FAENA_URL"]):
        yield program
        await program.app.close()
