"""Log lines: the fields of the running job, and what is written of hostile values."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import logging.config
import logging.handlers
import queue
import sys
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
import structlog

import faena.logging
from faena import Discard, Faena, Job, Retry
from faena.errors import ConfigError
from faena.job import Spec
from faena.logging import JobFilter, JsonFormatter, PlainFormatter, PrettyFormatter
from faena.telemetry.logging.bound import BOUND, FIELDS
from faena.telemetry.logging.setup import configured
from faena.testing import harness

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def own_logger(name: str) -> logging.Logger:
    """A logger that no other test sees."""
    return logging.Logger(name)  # noqa: LOG001 - see above


class Lines:
    """A logger of the test's own, and what it has written."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.log = own_logger("shop")
        self.handler = logging.StreamHandler(self._stream)
        self.handler.setFormatter(JsonFormatter())
        self.log.addHandler(self.handler)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def one(self) -> dict[str, Any]:
        (line,) = self.all
        return line


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def job() -> Iterator[Job]:
    """A running job."""
    headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    job = Job("mail", "job-1", Spec(task="send", tenant="acme", headers=headers), attempt=2)
    job.worker = "here"
    token = BOUND.set(job)
    yield job
    BOUND.reset(token)


def test_a_line_has_the_fields_of_the_job_that_runs(lines: Lines, job: Job) -> None:
    lines.log.warning("half of %d", 8, extra={"colour": "red"})
    line = lines.one
    assert line.pop("time").endswith("Z")
    assert line.pop("pid") > 0
    assert line == {
        "level": "warning",
        "logger": "shop",
        "message": "half of 8",
        "queue": "mail",
        "task": "send",
        "job_id": "job-1",
        "tenant": "acme",
        "attempt": 2,
        "worker": "here",
        "trace_id": TRACE,
        "colour": "red",
    }


def test_outside_of_jobs_there_are_none(lines: Lines) -> None:
    lines.log.warning("alone")
    assert not lines.one.keys() & set(FIELDS)


def test_an_exception_is_in_the_line_with_its_whole_traceback(lines: Lines) -> None:
    try:
        dict[str, int]()["two\nlines"]
    except LookupError:
        lines.log.exception("it failed")
    line = lines.one
    assert (line["message"], line["error"]) == ("it failed", "KeyError")
    assert line["traceback"].startswith("Traceback (most recent call last):\n")
    assert line["traceback"].endswith("KeyError: 'two\\nlines'")


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("two\nlines\x1b[2J\x9b\u2028", "two\nlines\x1b[2J\x9b\u2028"),
        ("\udc80 alone", "\\udc80 alone"),
        (1 << 70, str(1 << 70)),
        (float("nan"), None),
        (True, True),
        ({"a": [1, None]}, {"a": [1, None]}),
        ({"\udc80": 1}, "<dict that cannot be written>"),
        (Hostile(), "<Hostile that cannot be written>"),
        ({1, 2}, [1, 2]),
        (b"\x00", "AA=="),
    ],
)
def test_any_value_is_one_line_of_json(lines: Lines, given: Any, told: Any) -> None:
    lines.log.warning("said", extra={"value": given})
    assert lines.text.count("\n") == 1
    assert not any(sign in lines.text for sign in "\x1b\x9b\u2028\r")
    assert lines.one["value"] == told


def test_what_is_huge_is_cut_in_the_middle(lines: Lines) -> None:
    lines.log.warning("a" * 10**6, extra={"value": "b" * 10**6, "many": list(range(10**5))})
    line = lines.one
    assert len(lines.text) < 40_000
    assert "characters" in line["message"]
    assert line["message"].endswith("a")
    assert len(line["value"]) < 3_000
    assert isinstance(line["many"], str)


def test_arguments_that_do_not_fit_lose_no_line(
    lines: Lines, capsys: pytest.CaptureFixture[str]
) -> None:
    lines.log.warning("%d of %s", "x")  # noqa: PLE1206 - that is the point
    lines.log.warning("it was %s", Hostile())
    assert [one["message"] for one in lines.all] == [
        "%d of %s (its arguments cannot be written)",
        "it was %s (its arguments cannot be written)",
    ]
    assert capsys.readouterr().err == ""


def test_a_field_cannot_take_the_place_of_another(lines: Lines) -> None:
    lines.log.warning("said", extra={"level": "none", "time": 0, "pid": "x"})
    line = lines.one
    assert (line["level"], line["level_"], line["time_"], line["pid_"]) == (
        "warning",
        "none",
        0,
        "x",
    )


def test_the_filter_gives_other_formatters_the_fields(lines: Lines, job: Job) -> None:
    """Also where another thread writes: the record has them when it gets there."""
    passed: queue.SimpleQueue[Any] = queue.SimpleQueue()
    handler = logging.handlers.QueueHandler(passed)
    handler.addFilter(JobFilter())
    log = own_logger("far")
    log.addHandler(handler)
    log.warning("said", extra={"tenant": "another"})
    (record,) = [passed.get()]
    words: list[str] = []
    plain = logging.Formatter("%(queue)s %(job_id)s %(tenant)s %(attempt)s %(span_id)s %(message)s")

    def write() -> None:
        words.extend([plain.format(record), JsonFormatter().format(record)])

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert words[0] == "mail job-1 another 2 None said"
    assert json.loads(words[1])["job_id"] == "job-1"
    assert "span_id" not in json.loads(words[1])


def test_a_logging_configuration_can_name_them(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"json": {"()": "faena.logging.JsonFormatter"}},
            "filters": {"job": {"()": "faena.logging.JobFilter"}},
            "handlers": {
                "out": {
                    "class": "logging.StreamHandler",
                    "formatter": "json",
                    "filters": ["job"],
                    "stream": "ext://sys.stdout",
                }
            },
            "loggers": {"configured": {"handlers": ["out"], "propagate": False}},
        }
    )
    try:
        logging.getLogger("configured").warning("said")
    finally:
        logging.getLogger("configured").handlers.clear()
    assert json.loads(capsys.readouterr().out)["task"] == "send"


@pytest.mark.parametrize("style", ["json", "logging"])
def test_structlog_has_the_fields(style: str, job: Job) -> None:
    out = io.StringIO()
    kwargs: dict[str, Any]
    if style == "json":
        kwargs = {
            "processors": [faena.logging.add_job, structlog.processors.JSONRenderer()],
            "logger_factory": structlog.PrintLoggerFactory(out),
        }
    else:
        handler = logging.StreamHandler(out)
        handler.setFormatter(JsonFormatter())
        own = own_logger("own")
        own.addHandler(handler)
        kwargs = {
            "processors": [structlog.stdlib.render_to_log_kwargs],
            "logger_factory": lambda *_: own,
            "wrapper_class": structlog.stdlib.BoundLogger,
        }
    structlog.configure(**kwargs)
    try:
        structlog.get_logger().warning("said", colour="red", tenant="another")
    finally:
        structlog.reset_defaults()
    line = json.loads(out.getvalue())
    assert (line["queue"], line["job_id"], line["attempt"], line["trace_id"]) == (
        *("mail", "job-1", 2),
        TRACE,
    )
    assert (line["colour"], line["tenant"]) == ("red", "another")


def test_lines_for_people_name_the_job_and_cannot_be_forged(job: Job) -> None:
    record = logging.LogRecord("shop", 30, "", 0, "a\x1b[2J\r\n12:00 forged", (), None)
    plain, pretty = PlainFormatter().format(record), PrettyFormatter(colours=False).format(record)
    assert plain.endswith(
        f"WARNING  {record.process} mail/send job-1 a\\x1b[2J\\x0d\n    12:00 forged"
    )
    assert pretty.endswith("WARNING  mail/send job-1 a\\x1b[2J\\x0d\n    12:00 forged")
    assert "\x1b[33m" in PrettyFormatter(colours=True).format(record)


def test_the_log_is_set_up_once_and_children_can_ask_how(monkeypatch: pytest.MonkeyPatch) -> None:
    root = own_logger("root")
    monkeypatch.setattr(logging, "root", root)
    monkeypatch.setattr(logging, "getLogger", lambda *_: root)
    assert configured() is None
    faena.logging.configure("json", "WARNING")
    faena.logging.configure("plain", "debug")
    assert len(root.handlers) == 1
    assert configured() == ("plain", "debug")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    faena.logging.configure()
    assert configured() == ("plain", "info")
    with pytest.raises(ConfigError, match="style must be 'json' or 'pretty' or 'plain', got 'xml'"):
        faena.logging.configure("xml")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="level must be"):
        faena.logging.configure("json", "loud")


async def test_handlers_are_bound_to_their_own_jobs(lines: Lines) -> None:
    app = Faena("words")
    queue = app.queue("mail", retry=Retry.never(), concurrency=20)
    alone = copy_context()

    @queue.task
    async def send(secret: str, job: Job) -> None:
        lines.log.warning("%s", job.id)
        await asyncio.create_task(later(job))

    async def later(job: Job) -> None:
        lines.log.warning("%s", job.id)

    @queue.task
    def stamp(secret: str, job: Job) -> None:
        lines.log.warning("%s", job.id)

    @queue.task
    async def quick(secret: str, job: Job) -> None:
        lines.log.warning("%s", job.id)
        if job.tenant == "t3":
            raise Discard("no")

    async with harness(app) as h:
        for number in range(5):
            for task in (send, stamp, quick):
                await task.enqueue("4111-1111", tenant=f"t{number}")
        await h.drain()
    assert len(lines.all) == 20
    assert all(one["job_id"] == one["message"] for one in lines.all)
    assert "4111" not in lines.text
    assert copy_context() == alone
    assert BOUND.get() is None


async def test_the_handler_of_a_batch_is_bound_to_all_of_its_jobs(lines: Lines) -> None:
    app = Faena("words")

    @app.queue("mail").batch(size=2)
    async def pack(numbers: list[int]) -> None:
        lines.log.warning("packed")

    async with harness(app) as h:
        await pack.enqueue_many([1, 2], tenant="acme")
        await h.drain()
    line = lines.one
    assert (line["queue"], line["task"], line["jobs"], line["tenant"]) == (
        "mail",
        "pack",
        2,
        "acme",
    )
    assert not {"job_id", "attempt"} & line.keys()


async def test_a_batch_of_several_tenants_names_none(lines: Lines) -> None:
    app = Faena("words")

    @app.queue("mail").batch(size=2)
    async def pack(numbers: list[int]) -> None:
        lines.log.warning("packed")

    async with harness(app) as h:
        for tenant in ("acme", "zen"):
            await pack.enqueue(1, tenant=tenant)
        await h.drain()
    assert lines.one["jobs"] == 2
    assert "tenant" not in lines.one
