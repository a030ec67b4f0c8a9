"""`python -m apps.sandbox` tells where it is, serves until it is stopped, and leaves nothing."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from apps.providers import afip, mail
from apps.sandbox.__main__ import main

from tests._support import guard

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def program(*given: str) -> AsyncGenerator[Process]:
    guard.begin()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "apps.sandbox",
        *given,
        cwd=ROOT,
        stdout=PIPE,
        stderr=PIPE,
        limit=2**20,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def files(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def told(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
async def test_it_serves_what_it_prints_until_it_is_stopped(
    http: httpx.AsyncClient, ending: signal.Signals
) -> None:
    async with program("--json", "--most-entries", "100") as process:
        environment = json.loads(await told(process))
        client = afip.Client(afip.Settings.from_env(environment), http)
        assert (await client.dummy()).is_ok
        letter = mail.Mail(to=["ana@example.com"], subject="x", text="x")
        await mail.Client(mail.Settings.from_env(environment)).send(letter)
        url = environment["SANDBOX_URL"]
        counts = (await http.get(f"{url}/sandbox/counts")).json()
        assert counts["afip"] == {"FEDummy": {"ok": 1}}
        assert counts["mail"]["DATA"] == {"ok": 1}
        process.send_signal(ending)
        async with asyncio.timeout(60):
            assert await process.wait() == 0
        with pytest.raises(httpx.ConnectError):
            await http.get(f"{url}/sandbox")


async def test_a_shell_can_read_the_file_that_it_writes(tmp_path: Path) -> None:
    file = tmp_path / "sandbox.env"
    async with program("--file", str(file)) as process:
        exports = await told(process)
        assert exports.startswith("export SANDBOX_URL=http://127.0.0.1:")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        script = f'set -a; . "{file}"; exec {sys.executable} -c "{_SHOW}"'
        shell = await asyncio.create_subprocess_exec("sh", "-c", script, stdout=PIPE)
        shown, _ = await shell.communicate()
        environment = json.loads(shown)
        assert environment["SANDBOX_URL"] == exports.split("=", 1)[1].strip()
        assert environment["AFIP_KEY"].startswith("-----BEGIN PRIVATE KEY-----\n")
        assert json.loads(environment["FCM_SERVICE_ACCOUNT"])["project_id"] == "campo-tech-7"
        process.terminate()
        async with asyncio.timeout(60):
            await process.wait()
    assert files(tmp_path) == []


_SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.mark.parametrize("option", ["--port", "--smtp-port"])
async def test_a_port_that_is_taken_is_told(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with program(option, str(taken.getsockname()[1])) as process:
            _, words = await process.communicate()
    assert process.returncode == 1
    assert words.startswith(b"the sandbox cannot be served: ")
    assert words.count(b"\n") == 1


def test_a_ledger_that_keeps_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--most-entries", "0"])
    assert "must be 1 or more" in capsys.readouterr().err


def test_a_port_that_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--port", "99999"])
    assert "--port must be 0 to 65535, got 99999" in capsys.readouterr().err
