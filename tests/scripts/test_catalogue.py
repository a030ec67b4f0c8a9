"""Scripts, catalogue and pages say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faena.engine import keys
from faena.engine.script_library import load, names
from faena.inspection.audit import catalogued
from tests._support import sizes
from tests._support.populate import populate_arrivals, populate_parts
from tests._support.rig import Rig
from tests.scripts.test_any_call import FIELDS

ROOT = Path(__file__).resolve().parents[2]
LUA = ROOT / "src" / "faena" / "engine" / "lua"
FILES = sorted(LUA.rglob("*.lua"))
SCRIPTS = [path for path in FILES if "lib" not in path.parts]

BY_VARIABLE = {"ready", "delayed", "blocked", "running", "completed", "dead", "cancelled"}
"""States, which scripts reach through a variable."""

BY_WINDOW = {"window:", "claims:", "costs:"}
"""What a limit's window says of itself."""

UNGUARDED = {"LPOP", "LSET", "XDEL"}
"""Sent only by parts of `exchange`, and by `history_done`, which are sure."""

BY_THE_WIRE = {"fence", "relocator", "redriver:", "session:", "link:", "place:"}


def code(path: Path) -> str:
    return re.sub(r"^\s*--.*$", "", path.read_text(), flags=re.MULTILINE)


def literals(call: str) -> set[str]:
    pattern = re.compile(rf"\b{call}\('([^']+)'")
    return {name for path in FILES for name in pattern.findall(code(path))}


def variables() -> set[str]:
    """Columns that a script names in a list it goes through."""
    listed = re.compile(r"(?:PLACES =|ipairs\(\{) ?\{? ?((?:'\w+',? ?)+)\}")
    found = (name for path in FILES for name in listed.findall(code(path)))
    return {word for group in found for word in re.findall(r"'(\w+)'", group)}


def test_every_key_a_script_names_is_catalogued_and_the_reverse() -> None:
    catalogue = {key.name for key in keys.CATALOGUE}
    used = literals("key") | variables()
    assert used - catalogue == set()
    assert catalogue - used - BY_VARIABLE - BY_THE_WIRE - BY_WINDOW == set()


def test_every_channel_a_script_speaks_on_is_listed_and_the_reverse() -> None:
    assert literals("publish") == {name for name, _ in keys.CHANNELS}


def test_nobody_listens_on_a_channel_that_is_not_listed() -> None:
    with pytest.raises(ValueError, match="channel must be one of the catalogue, got 'homes'"):
        keys.channel("faena", "homes")


def test_no_key_is_made_any_other_way() -> None:
    for path in FILES:
        if path.name != "keys.lua":
            assert "KEYS[" not in code(path), f"{path.name} must name its keys through key()"


@pytest.mark.parametrize("table", [keys.table(), keys.channel_table()], ids=["keys", "channels"])
def test_the_page_shows_the_catalogue(table: str) -> None:
    assert table in (ROOT / "docs" / "design" / "keys.md").read_text()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_begins_with_its_contract(path: Path) -> None:
    purpose, *rest = path.read_text().splitlines()
    assert purpose.startswith("--- ")
    header = "\n".join(line for line in rest if line.startswith("--"))
    places = [
        header.find(part) for part in ("-- states   ", "-- keys  ", "--@args  ", "-- returns  ")
    ]
    assert -1 not in places, f"{path.name} must say its states, keys, args and what it returns"
    assert places == sorted(places)


@pytest.mark.parametrize("name", names())
def test_every_script_has_a_test_of_its_own(name: str) -> None:
    assert list(Path(__file__).parent.glob(f"test_{name}*.py"))


def test_a_lua_file_that_a_page_or_a_comment_names_is_there() -> None:
    known = [path.relative_to(ROOT).as_posix() for path in FILES]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py"), *FILES]
    for page in pages:
        for name in re.findall(r"[\w/]+\.lua\b", page.read_text("utf-8")):
            assert any(path.endswith(f"/{name}") for path in known), f"{page} names {name}"


def test_the_journal_knows_every_command_that_a_script_sends() -> None:
    known = set(re.findall(r"\b([A-Z]{3,}) = ", (LUA / "lib" / "journal.lua").read_text()))
    assert literals("call") - known <= {"DEL", "UNLINK", "XADD", *UNGUARDED}


def test_every_letter_of_a_mark_is_explained_judged_and_spoilt() -> None:
    text = (LUA / "lib" / "jobs" / "job_metadata.lua").read_text()
    table = "\n".join(line for line in text.splitlines() if line.startswith("--   "))
    explained = set(re.findall(r" {2,}([a-z])  (?=\S)", table))
    used = {letter for path in FILES for letter in re.findall(r"\bmark\.([a-z])\b", code(path))}
    (kinds,) = re.findall(r"KINDS = \{([^}]*)\}", text)
    judged = set(re.findall(r"\b([a-z]) = '", kinds))
    assert used - {"z"} <= explained
    assert explained - judged == {"c", "i", "s"}  # of two only whether they are there; a place
    assert explained <= {*FIELDS}
    page = (ROOT / "docs" / "design" / "keys.md").read_text()
    (said,) = re.findall(r"^- `marks`: (.*?)^- ", page, re.MULTILINE | re.DOTALL)
    assert {*re.findall(r"`([a-z])`", said)} == explained


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scripts_are_small(path: Path) -> None:
    assert list(sizes.measure_lua(path.relative_to(ROOT), path.read_text())) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_script_reads_what_has_no_bound(path: Path) -> None:
    forbidden = re.findall(r"call\('(KEYS|SCAN|HVALS|SMEMBERS|HSCAN|ZSCAN)'", code(path))
    sliced = {"scan", "upstream_views", "sweep_breakers", "forget_upstream"}  # at a cursor
    assert forbidden == (["HSCAN"] if path.stem in sliced else [])


@pytest.mark.parametrize("name", names())
def test_scripts_that_must_drain_a_full_broker_may_run_on_one(name: str) -> None:
    adds_work = {
        "enqueue",
        "rerun",
        "transfer_in",
        "retry_as_new",
        "redrive",
        "flow",
        "group",
        "fire",
    }
    (path,) = (path for path in SCRIPTS if path.stem == name)
    assert ("\n--@flags " in path.read_text()) == (name not in adds_work)


async def test_the_library_has_a_function_for_every_script_with_its_flags(rig: Rig) -> None:
    library = load("enqueue").library
    name = (await rig.engine.wire.call("FUNCTION", "LOAD", "REPLACE", library)).decode()
    listed = await rig.engine.wire.call("FUNCTION", "LIST", "LIBRARYNAME", name)
    found = dict(zip(listed[0][::2], listed[0][1::2], strict=True))[b"functions"]
    functions = [dict(zip(row[::2], row[1::2], strict=True)) for row in found]
    flags = {row[b"name"].decode(): {flag.decode() for flag in row[b"flags"]} for row in functions}
    assert set(flags) == {load(name).function for name in names()}
    assert flags[load("look").function] == {"no-writes"}
    assert flags[load("exchange").function] == {"allow-oom"}
    assert flags[load("enqueue").function] == set()


@pytest.mark.parametrize("name", names())
async def test_every_script_compiles_without_the_library_too(rig: Rig, name: str) -> None:
    assert await rig.engine.wire.call("SCRIPT", "LOAD", load(name).source)


async def test_every_key_of_a_filled_queue_is_of_the_catalogued_type(rig: Rig) -> None:
    await populate_parts(rig)
    await rig.engine.enqueue_durably("q", "c", "1", [("durable", b"010\n")], ("WAIT", 0, 10))
    await populate_arrivals(rig)
    taken = await rig.dump()
    seen = {name: catalogued(name) for name in taken}
    assert {name: key.type for name, key in seen.items() if key} == taken.types
    assert {key.name for key in seen.values() if key} == {key.name for key in keys.CATALOGUE}
