"""A command line that is wrong: one line that says what to do, no traceback, an exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faena.cli import main
from tests._support.command import Ran, run
from tests._support.embedded import sweep
from tests._support.valkey import Server, free_port

Capture = pytest.CaptureFixture[str]

SHOP = """
from faena import Faena

app = Faena("shop")
mail = app.queue("mail")
invoice = app.queue("invoice")
app.pool("high", [mail])
thing = 7


@mail.task
async def send(to: str) -> None: ...


@app.every("1d", queue=mail)
async def nightly() -> None: ...
"""

MODULES = {
    "shop": SHOP,
    "typo": "import faena\n\n\ndef f(:\n    pass\n",
    "needs": "import json\nimport no_such_package\n",
    "raises": "import faena\n\nx = 1\ny = x / 0\n",
    "deep": "import raises\n",
    "ours": "from faena import Faena\n\napp = Faena('x')\napp.queue('Not A Name')\n",
    "leaves": "import sys\n\nsys.exit('bye')\n",
    "stopped": "raise KeyboardInterrupt\n",
    "bare": "from faena import Faena\n\napp = Faena('bare')\n",
}

USAGE: dict[tuple[str, ...], str] = {
    ("obliterat",): "no command 'obliterat'; valid: advice, alerts, audit",
    (
        "retry",
    ): "no command 'retry'; 'rerun' runs the same job again, 'dlq retry' retries a dead job",
    ("queus",): "no command 'queus'; did you mean 'queues'?",
    ("queues",): "MODULE:APP must be given first, such as shop.tasks:app, or be in FAENA_APP",
    ("queues", "shop"): "or be in FAENA_APP, got 'shop'",
    ("queues", "shop:app", "mail"): "unexpected extra argument 'mail'",
    ("queues", "shop:app", "--jsn"): "no such option",
    ("job", "shop:app"): "QUEUE must be given",
    ("job", "shop:app", "mail"): "ID must be given",
    ("jobs", "shop:app", "mail", "--state", "gone"): "'gone' is not one of 'blocked', 'delayed'",
    ("jobs", "shop:app", "mail", "--limit", "0"): "a whole number from 1 to 1000, got '0'",
    ("jobs", "shop:app", "mail", "--limit", "abc"): "a whole number from 1 to 1000, got 'abc'",
    ("enqueue", "shop:app", "send"): "such as mail/send, got 'send'; did you mean 'mail/send'?",
    ("pause", "shop:app"): "give QUEUE or --all, and not both",
    ("pause", "shop:app", "mail", "--all"): "give QUEUE or --all, and not both",
    ("pause", "shop:app", "mail", "--for", "5x"): "must be a duration such as 90s, 5m",
    ("clean", "shop:app", "mail"): "--age",
    ("pause", "shop:app", "mail", "--for", "0s"): "invalid value for '--for': it must be a dura",
    ("worker", "shop:app", "--grace", "soon"): "must be a duration such as 90s, 5m",
    ("worker", "shop:app", "--memory", "lots"): (
        "must be a size of at least 16Mi, such as 512Mi or 1Gi, got 'lots'"
    ),
    ("worker", "shop:app", "--memory", "512"): "such as 512Mi or 1Gi, got '512'",
    ("worker", "shop:app", "--memory", "15Mi"): "such as 512Mi or 1Gi, got '15Mi'",
    ("worker", "shop:app", "--rate", "fast"): "100/min or 500/30s, got 'fast'",
    ("enqueue", "shop:app", "mail/send", "--retry", "3"): "; did you mean '--attempts'?",
    ("enqueue", "shop:app", "mail/send", "--tenent", "a"): "'--tenant'?",
    ("events", "shop:app", "--since", "yore"): "it must be now, start, how long ago (10m)",
    ("events", "shop:app", "--since", "2026-05-01T09:00"): "an instant with a time zone",
    ("health", "shop:app", "--timeout", "soon"): "must be a duration such as 90s",
    ("worker", "shop:app", "--concurrency", "0"): "--concurrency",
    ("worker", "shop:app", "--instances", "many"): "--instances",
    (
        "worker",
        "shop:app",
        "--name",
        "a b",
    ): "it must be letters, digits, '.', '_' or '-', got 'a b'",
    ("worker", "shop:app", "--queues", ","): "--queues must name at least one queue",
    ("worker", "shop:app", "--pool", "high", "--queues", "mail"): "give --pool or --queues",
    ("doctor", "shop:app", "--url", "valkey://localhost"): "give --url or MODULE:APP, not both",
}

WRONG: dict[tuple[str, ...], str] = {
    ("queues", "shop:"): "MODULE:APP must be of the form shop.tasks:app, got 'shop:'",
    ("queues", "9:app"): "MODULE:APP must be of the form shop.tasks:app",
    ("queues", "shp:app"): "no module 'shp' in the current directory",
    ("queues", "shop.tasks:app"): "no module 'shop.tasks'",
    ("queues", "shop:ap"): "module shop has no 'ap'; did you mean 'app'? valid: app",
    ("queues", "shop:thing"): "shop:thing must be a Faena app, got int; valid: app",
    ("queues", "typo:app"): "cannot import typo: SyntaxError: invalid syntax (typo.py, line 4)",
    ("queues", "needs:app"): "No module named 'no_such_package' (needs.py, line 2)",
    (
        "queues",
        "raises:app",
    ): "cannot import raises: ZeroDivisionError: division by zero (raises.py,",
    ("queues", "deep:app"): "(raises.py, line 4)",
    ("queues", "ours:app"): "(ours.py, line 4)",
    ("queues", "leaves:app"): "cannot import leaves: SystemExit: bye (leaves.py, line 3)",
    ("jobs", "shop:app", "mial"): "no queue 'mial' in app shop; did you mean 'mail'?",
    ("job", "bare:app", "mail", "x"): "no queue 'mail' in app bare; it declares none",
    ("worker", "bare:app"): "a worker must have at least one queue",
    ("worker", "shop:app", "--pool", "hihg"): "no pool 'hihg' in app shop; did you mean 'high'?",
    ("worker", "shop:app", "--queues", "mail,invoices"): "no queue 'invoices'",
    ("doctor", "--url", "http://x"): "--url must have a known scheme",
    ("events", "shop:app", "mial"): "no queue 'mial' in app shop; did you mean 'mail'?",
    ("events", "shop:app", "--kind", "failed"): "a failed attempt is 'retried'",
    (
        *("dlq", "list", "shop:app", "--older-than", "1d", "--newer-than", "1h"),
    ): "older_than must be less than newer_than (1h)",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name, text in MODULES.items():
        (home / f"{name}.py").write_text(text)
    return home


def check(ran: Ran, code: int, words: str) -> None:
    assert words in ran.err, ran
    assert ran.code == code, ran
    assert ran.out == "", ran
    assert re.fullmatch(r"faena: [^\n]+\n", ran.err), ran


@pytest.mark.parametrize("args", USAGE)
def test_words_that_make_no_sense_are_refused_with_code_2(
    args: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.delenv("FAENA_APP", raising=False)
    code = main(args)
    check(Ran(code, *capsys.readouterr()), 2, USAGE[args])


@pytest.mark.parametrize("args", WRONG)
def test_a_wrong_app_queue_or_pool_is_named_in_one_line(
    args: tuple[str, ...], home: Path, server: Server
) -> None:
    check(run(*args, cwd=home, FAENA_URL=server.url), 2, WRONG[args])


def test_what_is_given_is_not_blamed_on_a_variable_that_says_the_same(home: Path) -> None:
    given = run("queues", "raises:app", cwd=home, FAENA_APP="raises:app")
    assert given.err.startswith("faena: cannot import raises:")
    inherited = run("queues", cwd=home, FAENA_APP="raises:app")
    assert inherited.err.startswith("faena: FAENA_APP is wrong: cannot import raises:")


def test_an_unknown_queue_has_a_code_of_its_own(home: Path) -> None:
    ran = run("jobs", "shop:app", "mial", "--json", cwd=home)
    assert (ran.code, json.loads(ran.err)["code"]) == (2, "unknown_queue")


def test_an_empty_address_starts_no_server(home: Path) -> None:
    ran = run("queues", "shop:app", cwd=home, FAENA_URL="")
    check(ran, 2, "FAENA_URL must be an address such as valkey://localhost:6379/0, got an empty")


def test_a_bad_duration_is_refused_by_the_real_command(home: Path) -> None:
    ran = run("pause", "shop:app", "mail", "--for", "5x", cwd=home)
    check(ran, 2, "invalid value for '--for': it must be a duration such as 90s, 5m, 1h30m or 7d")


NINES = "9" * 5000
BYTE = "\udcff"
"""What a byte that is no UTF-8 comes in as."""
EDIT = ("schedules", "edit", "nightly")

ENDLESS = {
    ("enqueue", "mail/send", '"ana"', "--priority", NINES): "priority must be 1 to 100",
    ("enqueue", "mail/send", '"ana"', "--priority", "²"): "priority must be 1 to 100",
    ("enqueue", "mail/send", '"ana"', "--cost", f"tokens={NINES}"): "--cost must be UNIT=N",
    ("enqueue", "mail/send", "[" * 5000): "PAYLOAD must be JSON",
    ("enqueue", "mail/send", BYTE): "PAYLOAD must be JSON",
    ("change", "mail", "j1", "--priority", NINES): "priority must be 1 to 100",
    (*EDIT, "--priority", NINES): "priority must be 1 to 100",
    (*EDIT, "--count", NINES): "count must be a whole number from 1",
    (*EDIT, "--payload", "[" * 5000): "--payload must be JSON",
    (*EDIT, "--payload", BYTE): "--payload must be JSON",
    ("configure", "mail", f"max_running={NINES}"): "max_running must be a whole number from 1",
    ("configure", "mail", f"backpressure=hard={NINES}"): "backpressure hard must be a whole",
    ("reshard", "mail", NINES): "SHARDS must be a whole number",
    ("resume", "mail", "--reason", BYTE): "reason must be 1 to 200 printable characters",
    ("schedules", "show", BYTE): "no schedule",
    ("schedules", "pause", BYTE): "no schedule",
    ("schedules", "run", BYTE): "no schedule",
    ("schedules", "remove", BYTE): "no schedule",
    ("schedules", "remove", NINES): "no schedule",
}


def test_numbers_without_end_deep_json_and_stray_bytes_are_refused_with_code_2(
    home: Path, server: Server
) -> None:
    for args, words in ENDLESS.items():
        check(run(*args, cwd=home, FAENA_URL=server.url, FAENA_APP="shop:app"), 2, words)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"WORKER_CONCURRENCY": "some"}, "WORKER_CONCURRENCY"),
        ({"WORKER_RATE_LIMIT_MAX": "ten"}, "WORKER_RATE_LIMIT_MAX must be a whole number"),
        ({"WORKER_RATE_LIMIT_MAX": "9" * 5000}, "WORKER_RATE_LIMIT_MAX must be a whole number"),
        (
            {"WORKER_RATE_LIMIT_MAX": "10", "WORKER_RATE_LIMIT_DURATION": "1m"},
            "WORKER_RATE_LIMIT_DURATION must be a whole number of at least 1, got '1m'",
        ),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL"),
        ({"WORKER_ID": "a b"}, "it must be letters"),
    ],
)
def test_a_bad_value_in_the_environment_is_refused(
    environ: dict[str, str], words: str, home: Path
) -> None:
    check(run("worker", "shop:app", cwd=home, **environ), 2, words)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"FAENA_URL": "nowhere"}, "FAENA_URL must start with a scheme such as valkey://"),
        ({"REDIS_PORT": "high"}, "REDIS_PORT must be a port from 1 to 65535, got 'high'"),
        ({"FAENA_APP": "shop"}, "FAENA_APP must be of the form shop.tasks:app, got 'shop'"),
        ({"FAENA_APP": "shop:ap"}, "FAENA_APP is wrong: module shop has no 'ap'; did you mean"),
        ({"FAENA_APP": "shp:app"}, "FAENA_APP is wrong: no module 'shp'"),
    ],
)
@pytest.mark.parametrize("args", [("queues",), ("worker",), ("jobs", "mail"), ("doctor",)])
def test_a_bad_variable_has_the_same_code_everywhere(
    args: tuple[str, ...], environ: dict[str, str], words: str, home: Path
) -> None:
    check(run(*args, cwd=home, **({"FAENA_APP": "shop:app"} | environ)), 2, words)


@pytest.mark.parametrize(
    "args",
    [("queues", "shop:app"), ("jobs", "shop:app", "mail"), ("cancel", "shop:app", "mail", "x")],
)
def test_a_broker_that_cannot_be_reached_is_told_within_seconds(
    args: tuple[str, ...], home: Path
) -> None:
    url = f"valkey://127.0.0.1:{free_port()}/0"
    began = time.monotonic()
    ran = run(*args, cwd=home, FAENA_URL=url)
    check(ran, 1, "could not reach the broker at 127.0.0.1:")
    assert "start the broker, or correct its address: the app's url, or FAENA_URL" in ran.err
    assert time.monotonic() - began < 40


def test_a_broker_that_does_not_answer_is_told_within_seconds(home: Path) -> None:
    with Server("appendonly no", unix=True) as server:
        server.pause()
        began = time.monotonic()
        ran = run("queues", "shop:app", cwd=home, FAENA_URL=server.url)
        server.resume()
    check(ran, 1, "could not reach the broker")
    assert time.monotonic() - began < 40


@pytest.mark.parametrize("url", ["valkey://user:s3cret@127.0.0.1:1/x", "u:s3cret@host"])
def test_a_password_is_never_shown(url: str, home: Path) -> None:
    ran = run("queues", "shop:app", cwd=home, FAENA_URL=url)
    check(ran, 2, "FAENA_URL must")
    assert "s3cret" not in ran.err


def test_an_error_is_one_object_for_programs_also_on_an_embedded_server(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    try:
        ran = run("job", "shop:app", "mail", "nobody", "--json", cwd=tmp_path)
    finally:
        sweep(tmp_path / ".faena")
    assert (ran.code, ran.out) == (1, "")
    assert json.loads(ran.err) == {
        "code": "job_not_found",
        "message": "no job nobody in queue mail; `faena jobs` lists the jobs of a queue",
        "exit_code": 1,
    }


def test_an_interruption_while_the_app_is_imported_shows_no_traceback(home: Path) -> None:
    ran = run("queues", "stopped:app", cwd=home)
    assert (ran.code, ran.out, ran.err.strip()) == (130, "", "faena: interrupted")


def test_the_package_itself_can_be_run() -> None:
    argv = [sys.executable, "-P", "-m", "faena", "queus"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("faena: no command 'queus'")


def test_doctor_does_not_ask_for_changes_to_an_embedded_server(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    try:
        ran = run("doctor", "shop:app", "--json", cwd=tmp_path)
    finally:
        sweep(tmp_path / ".faena")
    (memory,) = [one for one in ran.document["items"] if one["name"] == "memory"]
    assert memory["advice"].startswith("nothing to do: an embedded Valkey")


def test_debug_shows_the_traceback_before_the_line(home: Path) -> None:
    ran = run("queues", "raises:app", "--debug", cwd=home)
    assert ran.code == 2
    assert "Traceback (most recent call last)" in ran.err
    assert ran.err.splitlines()[-1].startswith("faena: cannot import raises")


def test_a_job_that_is_not_there_is_named(home: Path, server: Server) -> None:
    ran = run("job", "shop:app", "mail", "nobody", cwd=home, FAENA_URL=server.url)
    check(ran, 1, "no job nobody in queue mail; `faena jobs` lists the jobs of a queue")


def test_a_reader_that_leaves_early_is_no_error(home: Path) -> None:
    pipe = f"{sys.executable} -P -m faena worker --help | true"
    done = subprocess.run(["/bin/sh", "-c", pipe], capture_output=True, text=True, check=False)
    assert done.stderr == ""
