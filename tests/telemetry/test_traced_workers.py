"""Traces and log lines across processes: of `faena worker`, its children, a killed one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from tests._support.command import Service
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.spans import Spans, Written, written_in
from tests._support.valkey import Server

TARGET = "tests._support.traced_app:app"
SECRET = "4111-1111"
EXIT_S = PATIENCE_S


class Program:
    """The producer's side: the same tasks, in another process, with a provider of its own."""

    def __init__(self, url: str) -> None:
        self.spans = Spans()
        self.app = Faena("traced", url, tracing=self.spans.provider)
        self.mail = self.app.remote_queue("mail")

    async def send(self, task: str, *payloads: Any) -> None:
        stub = self.mail.stub(task, payload=str)
        for payload in payloads:
            await stub.enqueue(payload, tenant="acme")

    def trace_of(self, task: str) -> str:
        for span in self.spans.named("job.enqueue mail"):
            if (span.attributes or {})["faena.task"] == task:
                return f"{span.context.trace_id:032x}"
        raise AssertionError(task)


@pytest.fixture
async def program(server: Server) -> AsyncIterator[Program]:
    program = Program(server.url)
    yield program
    await program.app.close()


def service(server: Server, tmp_path: Path, *args: str, **environ: str) -> Service:
    return Service(
        *("worker", TARGET, "--no-supervise", *args),
        log=tmp_path / "log",
        FAENA_URL=server.url,
        WORKER_ID="here",
        SPANS=str(tmp_path / "spans"),
        **environ,
    )


def attempts_of(found: list[Written], task: str) -> list[Written]:
    return [
        one
        for one in found
        if one.name == "job.attempt mail" and one.attributes["faena.task"] == task
    ]


async def test_traces_and_fields_reach_coroutines_threads_and_processes(
    server: Server, tmp_path: Path, program: Program
) -> None:
    spans = tmp_path / "spans"
    tasks = ("here", "thread", "process", "pack")
    with service(server, tmp_path, "--log-format", "json") as worker:
        await eventually(lambda: worker.serving() == 1)
        for task in tasks[:3]:
            await program.send(task, SECRET)
        await program.send("pack", SECRET, SECRET)
        await eventually(lambda: len(attempts_of(written_in(spans), "pack")) == 1)
        await eventually(
            lambda: sum(one.name == "job.attempt mail" for one in written_in(spans)) == 4
        )
        worker.send(signal.SIGTERM)
        code, _ = await worker.ended()
    assert code == 0, worker.log()
    found = written_in(spans)
    own = {one.name.removeprefix("own "): one for one in found if one.name.startswith("own ")}
    lines = [json.loads(line) for line in worker.log().splitlines()]
    said = {one["message"].removeprefix("said "): one for one in lines if "said" in one["message"]}
    for task in tasks:
        (attempt,) = attempts_of(found, task)
        assert (own[task].trace, own[task].parent) == (attempt.trace, attempt.id), task
        line = said[task]
        assert (line["queue"], line["task"], line["tenant"]) == ("mail", task, "acme")
        assert (line["worker"], line["logger"], line["level"]) == ("here", "shop", "info")
        assert (line["trace_id"], line["span_id"]) == (attempt.trace, own[task].id)
        if task != "pack":
            assert attempt.trace == program.trace_of(task)
            assert line["job_id"] == attempt.attributes["messaging.message.id"]
            assert line["attempt"] == 1
    assert said["pack"]["jobs"] == 2
    assert said["here"]["colour"] == "red"
    assert said["process"]["pid"] != said["here"]["pid"]
    assert SECRET not in worker.log()
    assert SECRET not in spans.read_text()


async def test_a_failed_attempt_is_one_line_of_json_with_its_trace(
    server: Server, tmp_path: Path, program: Program
) -> None:
    with service(server, tmp_path, LOG_FORMAT="json") as worker:
        await eventually(lambda: worker.serving() == 1)
        await program.send("fail", "x")
        await eventually(lambda: "the job is dead" in worker.log())
        worker.send(signal.SIGTERM)
        await worker.ended()
    lines = [json.loads(line) for line in worker.log().splitlines()]
    first, second = (one for one in lines if one["level"] in {"warning", "error"})
    assert first["message"].endswith(
        "(fail) of tenant acme: attempt 1 of 2 failed; the next attempt is in 20ms: "
        "LookupError: no luck\nat all"
    )
    assert first["traceback"].startswith("Traceback (most recent call last):\n")
    assert "\nLookupError: no luck\nat all" in first["traceback"]
    assert (first["error"], first["attempt"], second["attempt"]) == ("LookupError", 1, 2)
    assert {first["trace_id"], second["trace_id"]} == {program.trace_of("fail")}
    assert (first["worker"], first["tenant"], first["max_attempts"]) == ("here", "acme", 2)


async def test_a_worker_that_stops_sends_the_spans_that_it_still_holds(
    server: Server, tmp_path: Path, program: Program
) -> None:
    spans = tmp_path / "spans"
    with Service(
        *("worker", TARGET, "--log-format", "json"),
        log=tmp_path / "log",
        FAENA_URL=server.url,
        SPANS=str(spans),
        HOLDS="yes",
    ) as worker:
        await eventually(lambda: worker.serving() == 1)
        await program.send("here", "x")
        await eventually(lambda: "said here" in worker.log())
        assert not written_in(spans)
        worker.send(signal.SIGTERM)
        code, _ = await worker.ended()
    assert code == 0, worker.log()
    assert len(attempts_of(written_in(spans), "here")) == 1
    assert all(json.loads(line) for line in worker.log().splitlines())


async def test_a_job_whose_worker_is_killed_goes_on_in_its_trace(
    server: Server, tmp_path: Path, program: Program
) -> None:
    held, spans = tmp_path / "held", tmp_path / "spans"
    with service(server, tmp_path) as worker:
        await eventually(lambda: worker.serving() == 1)
        await program.send("wait", str(held))
        await eventually(held.exists)
        worker.kill()
    with service(server, tmp_path) as worker:
        await eventually(lambda: len(attempts_of(written_in(spans), "wait")) == 1)
        worker.send(signal.SIGTERM)
        await worker.ended()
    (attempt,) = attempts_of(written_in(spans), "wait")
    assert attempt.trace == program.trace_of("wait")
    assert attempt.attributes["faena.losses"] == 1
    assert attempt.attributes["faena.attempt"] == 1


def test_for_people_lines_name_the_job_and_show_no_control_characters() -> None:
    """As a program of the user's own would set it up."""
    code = (
        "import faena.logging, logging\n"
        "faena.logging.configure('pretty')\n"
        "logging.getLogger('shop').warning('a\\x1b[2J\\n2026-01-01 ERROR forged')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=EXIT_S, check=True
    )
    assert ran.stderr.endswith("WARNING  a\\x1b[2J\n    2026-01-01 ERROR forged\n")


# -- whether there is a trace ---------------------------------------------------------------------

_PROGRAM = """
import asyncio, sys
from faena import Faena

{before}
app = Faena("shop", {url!r}, namespace="choice"{option})
mail = app.queue("mail")

@mail.task
async def send() -> None: ...

async def main():
    {late}
    receipt = await send.enqueue()
    print("traceparent" in (await receipt.handle.view()).headers)
    await app.run_worker(until_empty=True)
    await mail.obliterate(force=True)
    await app.close()
    print(any(name.startswith("opentelemetry") for name in sys.modules))

asyncio.run(main())
"""
_SET = (
    "from opentelemetry import trace; from opentelemetry.sdk.trace import TracerProvider; "
    "trace.set_tracer_provider(TracerProvider())"
)
_BLOCK = "sys.modules['opentelemetry'] = None"


@pytest.mark.parametrize(
    ("before", "option", "late", "out"),
    [
        ("", "", "pass", "False\nFalse\n"),
        (_BLOCK, "", "pass", "False\nTrue\n"),  # the name that blocks it
        ("import opentelemetry.trace", "", "pass", "False\nTrue\n"),
        (_SET, "", "pass", "True\nTrue\n"),
        (_SET, ", tracing=False", "pass", "False\nTrue\n"),
        ("", ", tracing=True", _SET, "True\nTrue\n"),
        ("", "", _SET, "True\nTrue\n"),
    ],
)
def test_an_app_is_traced_if_the_program_has_set_a_provider(
    server: Server, before: str, option: str, late: str, out: str
) -> None:
    code = _PROGRAM.format(before=before, url=server.url, option=option, late=late)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=EXIT_S,
        check=False,
        env={**os.environ},
    )
    assert (ran.stdout, ran.returncode) == (out, 0), ran.stderr


def test_what_is_asked_for_and_not_installed_is_refused() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from faena import Faena\n"
        "from faena.errors import ConfigError\n"
        "for given in (True, 'yes'):\n"
        "    try: Faena('shop', tracing=given)\n"
        "    except ConfigError as error: print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=EXIT_S, check=True
    )
    assert ran.stdout == (
        "tracing needs the extra otel: install it (in a clone of Faena: pip install '.[otel]')\n"
        "tracing must be True, False, None or a TracerProvider, got 'yes'\n"
    )
