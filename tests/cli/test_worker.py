"""What `faena worker` reads from options, environment and pools, and how it logs."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from faena import Faena, Handle
from faena.cli import log, main, serving
from faena.cli.serving import Plan
from tests._support.command import Service
from tests._support.eventually import eventually
from tests._support.valkey import Server

SECRET = "4111-1111"
SHOP = """
from faena import Faena, Job, Retry

app = Faena("shop")
mail = app.queue("mail", retry=Retry.never(), concurrency=2)


@mail.task
async def send(card: str, job: Job) -> str:
    job.log(card)
    job.progress(card)
    return card


@mail.task
async def fail(card: str) -> None:
    raise ValueError("no luck")
"""

app = Faena("office", "redis://127.0.0.1:1/0")
mail = app.queue("mail")
invoice = app.queue("invoice")
app.pool("high", [mail], instances=3, concurrency=7, memory="1Gi")
app.pool("own", [mail], serves="dedicated")
TARGET = f"{__name__}:app"

VARIABLES = (
    *("WORKER_POOL", "WORKER_ID", "WORKER_CONCURRENCY", "LOG_LEVEL", "LOG_FORMAT"),
    *("WORKER_RATE_LIMIT_MAX", "WORKER_RATE_LIMIT_DURATION"),
)
Planned = Callable[..., Plan]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """The plan that a worker process would carry out."""
    plans: list[Plan] = []

    def keep(_app: Faena, plan: Plan, _line: object) -> int:
        plans.append(plan)
        return 0

    def run(*args: str, **environ: str) -> Plan:
        for name, text in environ.items():
            monkeypatch.setenv(name, text)
        assert main(["worker", TARGET, "--no-supervise", *args]) == 0
        return plans[-1]

    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(serving, "run", keep)
    monkeypatch.setattr(log, "configure", lambda *_: None)  # the log is pytest's here
    return run


def test_without_options_every_queue_is_served(planned: Planned) -> None:
    plan = planned()
    assert (plan.queues, plan.instances) == (("mail", "invoice"), 1)
    assert (plan.options.concurrency, plan.options.memory_limit) == (None, None)
    assert (plan.options.grace_s, plan.options.stuck_s) == (30.0, 15.0)
    assert plan.options.leaves_when_stuck


def test_a_pool_says_queues_instances_concurrency_and_memory(planned: Planned) -> None:
    plan = planned("--pool", "high")
    assert (plan.queues, plan.instances) == (("mail",), 3)
    assert (plan.options.concurrency, plan.options.memory_limit) == (7, 1 << 30)


def test_options_go_before_the_pool(planned: Planned) -> None:
    plan = planned("--pool", "high", "--concurrency", "2", "--memory", "512Mi", "--grace", "1m")
    assert (plan.options.concurrency, plan.options.memory_limit) == (2, 512 << 20)
    assert plan.options.grace_s == 60.0


def test_the_pool_or_an_option_says_which_shards_are_served(planned: Planned) -> None:
    assert planned().options.serves == "all"
    assert planned("--pool", "own").options.serves == "dedicated"
    assert planned("--pool", "own", "--serves", "shared").options.serves == "shared"


def test_a_worker_serves_nothing_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", TARGET, "--no-supervise", "--serves", "some"]) == 2
    assert "'some' is not one of 'all', 'shared', 'dedicated'" in capsys.readouterr().err


def test_the_environment_says_what_options_do_not(planned: Planned) -> None:
    environ = {
        "WORKER_POOL": "high",
        "WORKER_ID": "worker-7",
        "WORKER_CONCURRENCY": "5",
        "WORKER_RATE_LIMIT_MAX": "100",
        "WORKER_RATE_LIMIT_DURATION": "30000",
    }
    plan = planned(**environ)
    assert (plan.queues, plan.options.name, plan.options.concurrency) == (("mail",), "worker-7", 5)
    assert str(plan.options.rate) == "100/30s"
    plan = planned(
        "--queues", "invoice,mail", "--name", "me", "--rate", "5/s", "--concurrency", "1"
    )
    assert (plan.queues, plan.options.name) == (("invoice", "mail"), "me")
    assert (str(plan.options.rate), plan.options.concurrency) == ("5/s", 1)


def test_queues_go_before_the_pool_of_the_environment(planned: Planned) -> None:
    plan = planned("--queues", "invoice", WORKER_POOL="high")
    assert (plan.queues, plan.instances) == (("invoice",), 1)
    assert (plan.options.concurrency, plan.options.memory_limit) == (None, None)


def test_a_rate_of_the_environment_is_per_minute_unless_it_says_otherwise(planned: Planned) -> None:
    plan = planned(WORKER_RATE_LIMIT_MAX="10")
    assert str(plan.options.rate) == "10/min"


def test_an_empty_variable_is_as_good_as_none(planned: Planned) -> None:
    plan = planned(WORKER_POOL="", WORKER_ID="", WORKER_CONCURRENCY="", WORKER_RATE_LIMIT_MAX="")
    assert (plan.queues, plan.options.concurrency) == (("mail", "invoice"), None)


@pytest.mark.parametrize("flags", [["--log-format", "json"], []])
async def test_log_lines_are_plain_or_json_and_never_show_what_jobs_carry(
    flags: list[str], server: Server, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    args = ["worker", "shop:app", "--no-supervise", "--log-level", "debug"]
    with Service(
        *args,
        *flags,
        log=tmp_path / "log",
        cwd=tmp_path,
        FAENA_URL=server.url,
        WORKER_ID="here",
    ) as service:
        await eventually(lambda: service.serving() == 1)
        await _send_two(server)
        service.send(signal.SIGTERM)
        code, out = await service.ended()
    assert (code, out) == (0, "")
    assert SECRET not in service.log()
    lines = service.log().splitlines()
    said = f"worker here serves mail at {server.url}?db=0, namespace shop"
    if flags:
        records = [json.loads(line) for line in lines]
        (serving_line,) = [one for one in records if " serves " in one["message"]]
        assert serving_line["level"] == "info"
        assert serving_line["message"] == said
    else:
        time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
        pattern = rf"{time} INFO     \d+ {re.escape(said)}"
        assert any(re.fullmatch(pattern, line) for line in lines), lines


async def _send_two(server: Server) -> None:
    shop = Faena("shop", server.url)
    queue = shop.queue("mail", concurrency=2)

    @queue.task
    async def send(card: str) -> str:
        return card

    @queue.task
    async def fail(card: str) -> None: ...

    async with shop:
        done, failed = await send.enqueue(SECRET), await fail.enqueue(SECRET)
        assert await done.handle.result(timeout="60s") == SECRET
        await eventually(lambda: _is_dead(failed.handle))


async def _is_dead(handle: Handle[None]) -> bool:
    return await handle.state() == "dead"
