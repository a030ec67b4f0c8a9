"""`faena metrics` and `faena stats`: the page for Prometheus, and statistics on a terminal."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from faena import Discard, Faena
from tests._support.command import Service
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.valkey import Server, free_port
from tests.cli.conftest import Cli

app = Faena("metered", "redis://127.0.0.1:1/0")
mail = app.queue("mail")
TARGET = f"{__name__}:app"


@mail.task
async def send(number: int) -> None:
    if number < 0:
        raise Discard("no such address")


@mail.task
async def sort(number: int) -> None:
    pass


async def work() -> None:
    async with app:
        await send.enqueue_many([1, 2, -1])
        await sort.enqueue(4)
        await app.run_worker(until_empty=True)


@pytest.mark.usefixtures("broker")
def test_statistics_of_a_queue_and_of_its_tasks(cli: Cli) -> None:
    asyncio.run(work())
    code, out, _ = cli("stats", "mail", "--since", "24h")
    assert code == 0
    row = next(line.split() for line in out.splitlines() if line.startswith("all"))
    assert row[1:6] == ["4", "3", "0", "1", "25.0%"]
    assert "sort" not in out
    assert "3 completed" in out
    code, out, _ = cli("stats", "mail", "--by-task")
    names = [line.split()[0] for line in out.splitlines() if line.split()]
    assert [name for name in names if name in {"all", "send", "sort"}] == ["all", "send", "sort"]
    code, out, _ = cli("stats", "mail", "--by-task", "--json")
    told = json.loads(out)
    assert (told["completed"], told["dead"], told["error_rate"]) == (3, 1, 0.25)
    assert told["counters"]["enqueued"] == 4
    sent, sorted_ = told["tasks"]
    assert (sent["task"], sent["started"], sorted_["run"]["count"]) == ("send", 3, 1)
    assert 0 < sent["run"]["p50_s"] <= sent["run"]["p99_s"] < PATIENCE_S


@pytest.mark.usefixtures("broker")
def test_a_queue_without_jobs_has_nothing_to_tell(cli: Cli) -> None:
    code, out, _ = cli("stats", "mail")
    assert (code, "nothing happened" in out) == (0, True)


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("window", ["10s", "31d", "soon", "0s"])
def test_a_window_that_is_not_kept_is_refused(cli: Cli, window: str) -> None:
    code, _, err = cli("stats", "mail", "--since", window)
    assert code == 2
    assert "'--since': it must be a duration from 1m to 30d, such as 24h, got" in err
    assert len(err.splitlines()) == 1


@pytest.mark.usefixtures("broker")
def test_the_page_is_printed_in_both_formats(cli: Cli) -> None:
    code, out, err = cli("metrics")
    assert (code, err) == (0, "")
    assert 'faena_queue_depth{app="metered",queue="mail"} 0.0' in out
    _, modern, _ = cli("metrics", "--openmetrics")
    assert modern.endswith("# EOF\n")
    _, out, _ = cli("metrics", "--json")
    assert json.loads(out)["page"].startswith("# HELP faena_")


def test_without_a_broker_the_page_says_so_and_the_exit_code_too(cli: Cli) -> None:
    code, out, err = cli("metrics", TARGET)
    assert code == 1
    assert 'faena_broker_up{app="metered"} 0.0' in out
    assert "the numbers of the broker are missing" in err


async def test_one_program_serves_the_page_until_it_is_told_to_stop(
    server: Server, tmp_path: Path
) -> None:
    def read(url: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""

    program = f"from faena import Faena\napp = Faena('exported', {server.url!r})\n"
    (tmp_path / "shop.py").write_text(program + "app.queue('mail')\n")
    port = free_port()
    words = ("metrics", "shop:app", "--serve", str(port))
    with Service(*words, log=tmp_path / "log", cwd=tmp_path) as service:
        url = f"http://127.0.0.1:{port}"

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        await eventually(listens)
        code, page = await asyncio.to_thread(read, f"{url}/metrics")
        assert (code, (await asyncio.to_thread(read, f"{url}/other"))[0]) == (200, 404)
        assert 'faena_jobs{app="exported",queue="mail",state="ready"} 0.0' in page
        code, scaling = await asyncio.to_thread(read, f"{url}/scaling")
        assert (code, json.loads(scaling)["queues"]["mail"]["slots_wanted"]) == (200, 0)
        service.send(signal.SIGTERM)
        ended, out = await service.ended()
    assert (ended, out) == (0, f"metrics of exported at {url}/metrics\n"), service.log()


def test_a_port_in_use_is_one_line(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = cli("metrics", TARGET, "--serve", str(port))
    assert code == 2
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in err
