"""What tests of commands share: a server for each module, and a way to run a command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from faena import Faena
from faena.cli import main
from tests._support.valkey import Server

Cli = Callable[..., tuple[int, str, str]]
"""Exit code, standard output and standard error of a command."""


def listed(told: Any) -> Any:
    """The items of a list that is whole; any other document as it is."""
    is_whole = told.keys() == {"items", "cursor"} and told["cursor"] is None
    return told["items"] if is_whole else told


@pytest.fixture
def broker(
    server: Server, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The module's `app` on an empty server, named by its `TARGET` in FAENA_APP."""
    app: Faena = request.module.app
    monkeypatch.setenv("FAENA_APP", request.module.TARGET)
    with app.override(url=server.url):
        yield


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*args: str) -> tuple[int, str, str]:
        code = main(args)
        out, err = capsys.readouterr()
        return code, out, err

    return run
