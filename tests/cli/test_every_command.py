"""What holds for every command alike: help, refusals, and one shape of JSON."""

from __future__ import annotations

import asyncio
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest

from faena import Alerts, Faena, Price, Retry
from faena.cli.catalogue import CATALOGUE
from faena.cli.root import roof
from faena.engine.calls import resilience
from faena.engine.calls.features import FeatureCalls
from faena.resilience.upstream_options import UpstreamOptions
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("broker")

app = Faena("walker", "redis://127.0.0.1:1/0", alerts=Alerts())
mail = app.queue("mail", retry=Retry.never(), fair=True)
afip = app.upstream("afip", limits=["60/min"], prices=[Price("call", "1 ARS")])
voice = app.feature("ai.voice", fallback="manual")
app.level("busy", {"ai.voice": "offline"})
TARGET = f"{__name__}:app"
PASSWORD = "a long word 7"


@mail.task
async def send(card: int) -> int:
    return card


@mail.task
async def fail(_card: int) -> None:
    raise ValueError("no luck")


@app.every("6h", queue="mail")
async def tidy() -> None: ...


async def seed() -> dict[str, str]:
    """A job of each kind, by what it is called in `WORDS`."""
    async with app:
        ids = {"{done}": (await send.enqueue(1, tenant="acme")).id}
        for name in ("{dead}", "{dead2}", "{dead3}"):
            ids[name] = (await fail.enqueue(1)).id
        ended = await app.chain(fail.draft(2), send.draft(1)).start()
        await app.run_worker([mail], until_empty=True)
        flow = await app.chain(send.draft(1), fail.draft(2)).start()
        async with app.group(on_complete=send.draft(9)) as group:
            await group.enqueue(send, 2)
        ids |= {"{flow}": flow.id, "{ended}": ended.id, "{group}": group.id}
        ids["{ready}"] = (await send.enqueue(1, tenant="acme")).id
        for name in ("{late}", "{later}", "{latest}"):
            ids[name] = (await send.enqueue(1, delay="1h")).id
        await app.schedules.create("made", send, every="1h", payload=1)
        engine = (await app.runtime()).engine
        await resilience.declare(engine, {"old": UpstreamOptions().settings()})
        await FeatureCalls(engine).declare({"old": {}}, {})
        accounts = Accounts(engine)
        await accounts.add_user(Account(name="ana", role=Role.VIEWER), PASSWORD)
        token, _ = await accounts.add_token(Account(name="ci", role=Role.VIEWER))
        ids["{token}"] = token.id
        ids["{silence}"] = (await app.silence(lasting="1h", reason="import")).id
        return ids


WORDS: dict[str, tuple[str, ...]] = {
    "queues": (),
    "workers": (),
    "tasks": (),
    "enqueue": ("mail/send", "7"),
    "pause": ("mail",),
    "resume": ("--all",),
    "clean": ("--age", "7d"),
    "drain": ("mail", "--yes"),
    "obliterate": ("mail", "--yes"),
    "configure": ("mail", "max_running=5"),
    "reset": ("mail",),
    "tenants show": ("mail",),
    "tenants dedicate": ("mail", "zen"),
    "tenants rejoin": ("mail", "acme"),
    "tenants set": ("mail", "acme", "--weight", "2"),
    "tenants hold": ("mail", "acme"),
    "tenants release": ("mail", "acme"),
    "tenants reset": ("mail", "acme"),
    "shares": ("mail",),
    "stats": ("mail", "--by-task"),
    "metrics": (),
    "shards": (),
    "reshard": ("mail", "2"),
    "alerts list": (),
    "alerts history": (),
    "alerts silence": ("depth", "mail", "--for", "1h", "--reason", "import"),
    "alerts unsilence": ("{silence}",),
    "alerts test": ("log",),
    "features list": (),
    "features show": ("ai.voice",),
    "features set": ("ai.voice", "offline", "--message", "down", "--for", "1h"),
    "features clear": ("ai.voice",),
    "features levels": (),
    "features forget": ("old",),
    "features level": ("busy", "on", "--for", "1h"),
    "schedules list": (),
    "schedules show": ("tidy",),
    "schedules create": ("new", "--task", "mail/send", "--payload", "1", "--every", "1h"),
    "schedules edit": ("tidy", "--jitter", "5s"),
    "schedules reset": ("tidy",),
    "schedules pause": ("tidy",),
    "schedules resume": ("tidy",),
    "schedules run": ("tidy",),
    "schedules remove": ("made",),
    "budgets forget": (),
    "budgets list": (),
    "budgets report": (),
    "upstreams forget": ("old",),
    "upstreams list": (),
    "upstreams show": ("afip",),
    "upstreams panic": ("afip", "--reason", "certificates expired", "--for", "1h"),
    "upstreams resume": ("afip",),
    "job": ("mail", "{done}", "--payload"),
    "jobs": ("mail", "--state", "dead", "--limit", "2"),
    "cancel": ("mail", "{ready}"),
    "rerun": ("mail", "{done}"),
    "promote": ("mail", "--all"),
    "change": ("mail", "{late}", "--delay", "2h"),
    "remove": ("mail", "{later}", "--yes"),
    "dlq list": (),
    "dlq show": ("mail", "{dead}"),
    "dlq groups": (),
    "dlq stats": (),
    "dlq retry": ("mail", "{dead}"),
    "dlq discard": ("mail", "{dead2}"),
    "dlq resolve": ("mail", "{dead3}"),
    "dlq redrive": ("mail",),
    "dlq redrives": ("mail",),
    "retry-failed": (),
    "flow list": (),
    "flow show": ("{flow}",),
    "flow cancel": ("{flow}",),
    "flow rerun": ("{ended}",),
    "groups": (),
    "explain": ("mail", "{late}"),
    "advice": (),
    "what-if": ("mail", "--slots", "8"),
    "audit": (),
    "doctor": (),
    "events": ("--since", "start", "--limit", "1"),
    "completion": ("bash",),
    "health": (),
    "status": (),
    "users list": (),
    "users add": ("bea", "--role", "operator"),
    "users invite": ("eva", "--role", "operator"),
    "users password": ("ana",),
    "users remove": ("ana",),
    "tokens list": (),
    "tokens add": ("ci", "--for", "1h"),
    "tokens remove": ("{token}",),
}
"""A command line for every command that ends by itself."""

SERVICES = {"worker", "dev", "dashboard", "monitor"}
"""Those that run until they are told to stop: see their own tests."""

LISTS = {
    *("queues", "workers", "tasks", "pause", "resume", "clean", "tenants show", "shares", "shards"),
    *("schedules list", "jobs", "cancel", "rerun", "change", "remove", "dlq list", "dlq groups"),
    *("users list", "tokens list"),
    *("dlq retry", "dlq discard", "dlq resolve", "dlq redrives", "retry-failed", "flow list"),
    *("advice", "groups", "audit", "doctor", "upstreams list", "features levels", "budgets list"),
    "alerts history",
}


def commands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield name, command


def leaves(group: click.Group = roof, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in commands(group):
        if isinstance(command, click.Group):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def groups(group: click.Group = roof, path: str = "") -> Iterator[str]:
    for name, command in commands(group):
        if isinstance(command, click.Group):
            yield f"{path}{name}"
            yield from groups(command, f"{path}{name} ")


EVERY = [path for path, _ in leaves()]


def check_shape(value: Any, where: str) -> None:
    """No microseconds, no texts for numbers; instants are ISO 8601 in UTC."""
    if isinstance(value, list):
        for one in value:
            check_shape(one, where)
    if isinstance(value, dict):
        for name, one in value.items():
            at = f"{where}.{name}"
            assert not name.endswith("_us"), at
            if name.endswith(("_at", "_until")) and one is not None:
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", one), at
            if name.endswith("_s"):
                assert one is None or isinstance(one, float | int), at
            check_shape(one, at)


def test_a_command_line_is_known_for_every_command() -> None:
    with_postgres = {path for path in EVERY if path.startswith("pg ")}  # tests/pg has theirs
    assert set(EVERY) - SERVICES - with_postgres == set(WORDS)
    assert set(WORDS) >= LISTS


@pytest.mark.parametrize("path", [*EVERY, *groups()])
def test_every_command_has_help(path: str, cli: Cli) -> None:
    code, out, err = cli(*path.split(), "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: faena {path} ")
    assert "Example:" in out
    assert "--json" in out


def test_every_option_has_help() -> None:
    silent = [
        f"{path} {option.opts[0]}"
        for path, command in leaves()
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden and not option.help
    ]
    assert silent == []


@pytest.mark.parametrize("path", EVERY)
def test_every_command_refuses_an_unknown_option(path: str, cli: Cli) -> None:
    code, out, err = cli(*path.split(), "--no-such-option")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"faena: no such option:? '?--no-such-option[^\n]*\n", err)
    code, out, err = cli(*path.split(), "--no-such-option", "--json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    told = json.loads(err)
    assert (told["code"], told["exit_code"]) == ("usage_error", 2)
    assert "--no-such-option" in told["message"]


@pytest.mark.parametrize("path", WORDS)
def test_every_command_prints_one_json_document_of_one_shape(
    path: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = asyncio.run(seed())
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
    words = [ids.get(word, word) for word in WORDS[path]]
    code, out, err = cli(*path.split(), *words, "--json")
    is_sick = path == "doctor"  # a server without persistence
    assert code == (1 if is_sick else 0), err
    assert out.count("\n") == 1
    told = json.loads(out)
    assert isinstance(told, dict)
    assert ("items" in told) == (path in LISTS)
    if path in LISTS:
        assert told.keys() == {"items", "cursor"}
        assert isinstance(told["items"], list)
    check_shape(told, path)


def test_help_loads_no_command() -> None:
    code = "import sys; from faena.cli import main; main(['--help']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ran.stdout.splitlines()[-1].split()
    assert {f"faena.cli.{module}" for module, _ in CATALOGUE.values()}.isdisjoint(loaded)
    assert {"rich.console", "faena.app", "asyncio"}.isdisjoint(loaded)
