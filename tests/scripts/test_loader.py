"""The loader puts parts and scripts together, and refuses files that disagree with themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from faena.engine.script_library import library_source, load, plain_source
from faena.engine.scripts import Settlement, Turn, enqueue_args, exchange_args, renew_args
from faena.engine.source import Arguments, SourceError, read
from faena.errors import InternalError
from faena.outcomes import Completed, ErrorRecord, Retried
from tests._support.lua_check import LUA, problems
from tests._support.valkey import Server

JOURNAL = (LUA / "lib" / "journal.lua").read_text()
KEY = "--- Keys.\n--@exports key\nlocal function key(name)\n  return KEYS[1] .. name\nend\n"
SEEN = (
    "--- What a call has seen.\n--@exports see\n--@state seen = {}   -- names\n--@state times = 0\n"
    "local function see(name)\n  context.seen[#context.seen + 1] = name\n"
    "  context.times = context.times + 1\nend\n"
)
LOOK = (
    "--- Look.\n--@flags no-writes\n--@args name\n--@include key, seen\n"
    "see(key(name))\nreturn { context.times, #context.seen, context.seen[1] }\n"
)


def files(root: Path, **texts: str) -> Path:
    """Scripts, and parts whose names begin with `lib_`."""
    (root / "lib").mkdir(exist_ok=True)
    for name, text in {"lib_journal": JOURNAL, **texts}.items():
        folder = "lib/" if name.startswith("lib_") else ""
        (root / f"{folder}{name.removeprefix('lib_')}.lua").write_text(text)
    return root


@pytest.fixture(scope="module")
def client() -> Iterator[redis.Redis]:
    with Server("appendonly no", unix=True) as server:
        client = redis.Redis.from_url(server.url, decode_responses=True)
        yield client
        client.close()


def call(client: redis.Redis, root: Path, name: str, *args: str) -> list[Any]:
    """Once as a function, and once as a script of its own."""
    sources = read(root)
    client.function_load(library_source(sources), replace=True)
    first = client.fcall(f"faena_0_{name}", 1, "q:", "", *args)
    assert client.eval(plain_source(sources, sources.scripts[name]), 1, "q:", "", *args) == first
    return first  # pyright: ignore[reportReturnType] - not awaited


def test_a_part_is_loaded_once_however_many_use_it(tmp_path: Path) -> None:
    sources = read(files(tmp_path, lib_key=KEY, lib_seen=SEEN, look=LOOK, peek=LOOK))
    assert library_source(sources).count("local function key(name)") == 1


def test_the_library_is_not_much_larger_than_the_files() -> None:
    assert len(load("enqueue").library) <= 360_000


def test_state_is_new_at_every_call(client: redis.Redis, tmp_path: Path) -> None:
    root = files(tmp_path, lib_key=KEY, lib_seen=SEEN, look=LOOK)
    for _ in range(3):
        assert call(client, root, "look", "a") == [1, 1, "q:a"]


def test_a_part_has_its_parts_before_it(client: redis.Redis, tmp_path: Path) -> None:
    above = (
        "--- Above.\n--@include key\n--@exports above\n"
        "local function above()\n  return key('a')\nend\n"
    )
    root = files(
        tmp_path, lib_key=KEY, lib_above=above, go="--- Go.\n--@include above\nreturn above()\n"
    )
    assert call(client, root, "go") == "q:a"


def test_a_part_may_lie_in_a_folder_and_is_included_by_its_name(
    client: redis.Redis, tmp_path: Path
) -> None:
    root = files(tmp_path, lib_seen=SEEN, look=LOOK)
    (root / "lib" / "inner").mkdir()
    (root / "lib" / "inner" / "key.lua").write_text(KEY)
    assert call(client, root, "look", "a") == [1, 1, "q:a"]
    (root / "lib" / "key.lua").write_text(KEY)
    assert problems(root) == ["lib/key.lua has the same name as lib/inner/key.lua"]


def test_the_plain_form_has_only_the_parts_that_it_needs(tmp_path: Path) -> None:
    read_only = "--- Go.\n--@flags no-writes\n--@include key\nreturn key('a')\n"
    sources = read(files(tmp_path, lib_key=KEY, lib_seen=SEEN, look=LOOK, go=read_only))
    plain = plain_source(sources, sources.scripts["go"])
    assert "function key" in plain
    assert "function see" not in plain
    assert "function guarded" not in plain


def test_there_may_be_many_parts_with_many_exports(client: redis.Redis, tmp_path: Path) -> None:
    """Lua has 200 local variables in a function, and 60 of those around it."""
    parts = {
        f"lib_p{i}": f"--- P.\n--@exports {', '.join(f'x{i}_{k}' for k in range(5))}\n"
        + "".join(f"local function x{i}_{k}()\n  return {k}\nend\n" for k in range(5))
        for i in range(300)
    }
    total = " + ".join(f"x{i}_0() + x{i}_4()" for i in range(25))
    script = f"--- S.\n--@include {', '.join(f'p{i}' for i in range(25))}\nreturn {total}\n"
    rest = f"--- R.\n--@include {', '.join(f'p{i}' for i in range(275, 300))}\nreturn x299_1()\n"
    assert call(client, files(tmp_path, **parts, script=script, rest=rest), "script") == 100


TOLD = (
    "--- What is told.\n--@include key\n--@exports tell, write_told\n--@state told = {}\n"
    "--@ending write_told\n"
    "local function tell(word)\n  context.told[#context.told + 1] = word\nend\n"
    "local function write_told()\n  if next(context.told) then\n"
    "    call('RPUSH', key('told'), unpack(context.told))\n  end\nend\n"
)
COUNTED = (
    "--- What is counted, and told in the end.\n--@include told\n"
    "--@exports count, write_count\n--@state number = 0\n--@ending write_count\n"
    "local function count()\n  context.number = context.number + 1\nend\n"
    "local function write_count()\n  tell('counted ' .. context.number)\nend\n"
)
COUNT = (
    "--- Count.\n--@args when\n--@include told, counted\ncount()\ntell('told')\n"
    "if when == 'early' then\n  return 'early'\nelseif when == 'not at all' then\n"
    "  error('no')\nend\nreturn 'late'\n"
)


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_parts_ending_comes_behind_every_return(
    client: redis.Redis, tmp_path: Path, when: str
) -> None:
    client.delete("q:told")
    root = files(tmp_path, lib_key=KEY, lib_told=TOLD, lib_counted=COUNTED, count=COUNT)
    assert call(client, root, "count", when) == when
    assert client.lrange("q:told", 0, -1) == 2 * ["told", "counted 1"]  # once in either form


def test_endings_are_taken_back_with_their_script(client: redis.Redis, tmp_path: Path) -> None:
    fails = TOLD.replace("end\nend\n", "end\n  error('no')\nend\n")
    root = files(tmp_path, lib_key=KEY, lib_told=fails, go="--- Go.\n--@include told\ntell('a')\n")
    client.delete("q:told")
    client.function_load(library_source(read(root)), replace=True)
    with pytest.raises(redis.ResponseError, match="no"):
        client.fcall("faena_0_go", 1, "q:", "")
    assert client.exists("q:told") == 0


def test_a_script_that_fails_has_no_ending(client: redis.Redis, tmp_path: Path) -> None:
    root = files(tmp_path, lib_key=KEY, lib_told=TOLD, lib_counted=COUNTED, count=COUNT)
    client.delete("q:told")
    with pytest.raises(redis.ResponseError, match="no"):
        call(client, root, "count", "not at all")
    assert client.exists("q:told") == 0


def test_a_script_that_only_reads_has_no_ending(client: redis.Redis, tmp_path: Path) -> None:
    looks = "--- Look.\n--@flags no-writes\n--@include told\ntell('a')\nreturn 'seen'\n"
    root = files(tmp_path, lib_key=KEY, lib_told=TOLD, look=looks)
    assert call(client, root, "look") == "seen"


def test_arguments_are_local_variables_of_the_body(client: redis.Redis, tmp_path: Path) -> None:
    go = (
        "--- Go.\n--@flags no-writes\n--@args to, by?\n--@args id lease...\n"
        "--          by is who asks\n"
        "return { to, by, first_id, ARGV[first_id + 1] }\n"
    )
    assert call(client, files(tmp_path, go=go), "go", "q", "", "a", "l") == ["q", "", 4, "l"]


def test_a_script_that_includes_it_knows_the_instant(client: redis.Redis, tmp_path: Path) -> None:
    names = ("now", "safe_read")
    parts = {f"lib_{name}": (LUA / "lib" / f"{name}.lua").read_text() for name in names}
    go = "--- Go.\n--@flags no-writes\n--@include now\nreturn now\n"
    root = files(tmp_path, **parts, go=go)
    client.function_load(library_source(read(root)), replace=True)
    assert client.fcall("faena_0_go", 1, "q:", 5) == 5
    assert client.fcall("faena_0_go", 1, "q:", "") > 10**15  # pyright: ignore[reportOperatorIssue] - not awaited


ARGUMENTS = Arguments(("to", "by"), frozenset({"by"}), ("id", "lease"))


def test_arguments_are_sent_in_the_order_of_the_header() -> None:
    assert ARGUMENTS.arranged("s", ["a", "l"], {"by": "ana", "to": 5}) == [5, "ana", "a", "l"]
    assert ARGUMENTS.arranged("s", [], {"to": 5}) == [5, ""]
    assert ARGUMENTS.arranged("s", [], {"by": None, "to": 5}) == [5, ""]


MISTAKEN = {
    "s must be given to": ([], {"by": "ana"}),
    "s must be given from, to": ([], {"to": None}),
    "s does not take at, now": ([], {"to": 1, "from": 1, "now": 5, "at": 5}),
    "s must be given id lease": (["a"], {"to": 1, "from": 1}),
}


@pytest.mark.parametrize("said", MISTAKEN)
async def test_arguments_that_the_header_does_not_name_are_never_sent(said: str) -> None:
    rest, named = MISTAKEN[said]
    known = Arguments(("from", "to"), frozenset[str](), ("id", "lease"))
    taken = ARGUMENTS if said == "s must be given to" else known
    with pytest.raises(InternalError, match=f"^{said}$"):
        taken.arranged("s", rest, named)


def test_the_hot_calls_build_their_arguments_in_the_order_of_their_headers() -> None:
    record = Settlement("c", "lc", Retried(7, ErrorRecord(name="E", message="m")))
    done = Settlement("a", "la", Completed()), Settlement("b", "lb", Completed(b"1"))
    turn = Turn("call", 5, [*done, record], {"x": 1}, is_sweep=True, least_lease_us=9)
    built = exchange_args("me", "w", turn._replace(next_sweep_us=8, about="1 2 3"))
    assert built == load("exchange").args.arranged(
        "exchange",
        ["a", "la", "b", "lb", b"1", "c", "lc", "retry", 7, b'{"name":"E","message":"m"}', b""],
        {
            "caller": "me",
            "lease": "call",
            "worker": "w",
            "want": 5,
            "sweep": "8 1 2 3",
            "samples": b"\x81\xa1x\x01",
            "least_us": 9,
            "plain": 1,
            "kept": 1,
        },
    )
    assert enqueue_args("me", "call", 3, [("a", b"x")]) == load("enqueue").args.arranged(
        "enqueue", ["a", b"x"], {"caller": "me", "id_of_call": "call", "epoch": 3}
    )
    assert renew_args(5, [("a", "l")]) == load("renew").args.arranged(
        "renew", ["a", "l"], {"least_us": 5}
    )


def test_comments_and_indentation_are_not_loaded_but_texts_are(
    client: redis.Redis, tmp_path: Path
) -> None:
    body = (
        "--- It's a script.\n--@flags no-writes\n  -- it's nothing\n"
        "local a = '-- text'   -- more\nreturn a\n"
    )
    root = files(tmp_path, go=body)
    assert call(client, root, "go") == "-- text"
    assert "nothing" not in library_source(read(root))
    assert "more" not in library_source(read(root))


REFUSED = {
    "a.lua includes nowhere, which is not in lib/": {"a": "--- A.\n--@include nowhere\nreturn 1\n"},
    "lib/p.lua includes q, which includes lib/p.lua": {
        "lib_p": "--- P.\n--@include q\n--@exports p\nlocal p = 1\n",
        "lib_q": "--- Q.\n--@include p\n--@exports q\nlocal q = 1\n",
        "a": "--- A.\n--@include q\nreturn q\n",
    },
    "lib/p.lua exports p, which it does not declare": {"lib_p": "--- P.\n--@exports p\n"},
    "lib/p.lua ends with q, which it does not export": {
        "lib_p": "--- P.\n--@exports p\n--@ending q\nlocal p, q = 1, 2\n"
    },
    "lib/q.lua exports key, and so does lib/key.lua": {
        "lib_key": KEY,
        "lib_q": "--- Q.\n--@exports key\nlocal key = 1\n",
    },
    "lib/a.lua has the same name as a.lua": {"a": "--- A.\nreturn 1\n", "lib_a": "--- A.\n"},
    "a.lua has --@inclode, which is not a directive": {"a": "--- A.\n--@inclode key\nreturn 1\n"},
    "a.lua has --@shure, which is not a directive": {"a": "--- A.\n--@shure\nreturn 1\n"},
    "a.lua has --@args id..., which is not name, name? or name...": {
        "a": "--- A.\n--@args id..., to\nreturn to\n"
    },
    "a.lua has --@args To, which is not name, name? or name...": {
        "a": "--- A.\n--@args To\nreturn To\n"
    },
    "a.lua names an argument twice": {"a": "--- A.\n--@args to, to?\nreturn to\n"},
    "lib/p.lua has --@state seen, which is not name = value": {"lib_p": "--- P.\n--@state seen\n"},
}


@pytest.mark.parametrize("said", REFUSED)
def test_files_that_cannot_be_put_together_are_refused(tmp_path: Path, said: str) -> None:
    root = files(tmp_path, **REFUSED[said])
    with pytest.raises(SourceError) as refused:
        library_source(read(root))
    assert str(refused.value) == said
    assert problems(root) == [said]


CHANGING = (
    "--- P.\n--@exports number, next_number\nlocal number = 1\n"
    "local function next_number()\n  number = number + 1\nend\n"
)
LAST = "--- L.\nwrite_last('SET', KEYS[1], 1)\n"
USED = {"lib_key": KEY, "lib_seen": SEEN, "look": LOOK, "last": LAST}
WRONG = {
    "a.lua uses key of lib/key.lua and does not include it": {"a": "--- A.\nreturn key('x')\n"},
    "a.lua uses kez, which nobody declares": {"a": "--- A.\nreturn kez('x')\n"},
    "a.lua includes key and uses nothing of it": {
        "a": "--- A.\n--@include key\nlocal a = { key = 2 }\na.key = 1\nreturn a.key\n"
    },
    "a.lua uses context.seen of lib/seen.lua and does not include it": {
        "a": "--- A.\nreturn context.seen\n"
    },
    "a.lua uses context.sean, which no part has in its --@state": {
        "a": "--- A.\nreturn context.sean\n"
    },
    "a.lua has to in its --@args, and does not use it": {"a": "--- A.\n--@args to\nreturn 1\n"},
    "a.lua has first_id in its --@args, and does not use it": {
        "a": "--- A.\n--@args id...\nreturn 1\n"
    },
    "a.lua assigns key, which belongs to lib/key.lua": {
        "a": "--- A.\n--@include key\nkey = key('x')\nreturn key\n"
    },
    "lib/p.lua exports number, which changes: keep it in `context`": {
        "lib_p": CHANGING,
        "a": "--- A.\n--@include p\nnext_number()\nreturn number\n",
    },
    "lib/p.lua exports q, which nobody uses": {
        "lib_p": "--- P.\n--@exports p, q\nlocal p, q = 1, 2\n",
        "a": "--- A.\n--@include p\nreturn p\n",
    },
    "lib/p.lua is included by nobody": {
        "lib_p": "--- P.\n--@state p = 1\ncontext.p = 2\n",
        "a": "--- A.\nreturn 1\n",
    },
    "lib/p.lua has spare in its --@state, which nobody uses": {
        "lib_p": "--- P.\n--@exports p\n--@state spare = 0\nlocal p = 1\n",
        "a": "--- A.\n--@include p\nreturn p\n",
    },
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, said: str) -> None:
    assert problems(files(tmp_path, **USED, **WRONG[said])) == [said]


NUMBERED = (
    *("return ARGV[2]", "for i = 2, #ARGV do\n  call('DEL', ARGV[i])\nend"),
    *("return { unpack(ARGV, 3) }", "return #ARGV > 5", "return #ARGV == 6"),
)


@pytest.mark.parametrize("body", NUMBERED)
def test_an_argument_may_not_be_read_by_its_number(tmp_path: Path, body: str) -> None:
    said = "a.lua reads an argument by its number: name it in its --@args"
    assert problems(files(tmp_path, **USED, a=f"--- A.\n{body}\n")) == [said]


def test_names_of_inner_scopes_are_no_ones_else(tmp_path: Path) -> None:
    body = (
        "--- A.\nlocal function f(key, ...)\n  for see, other in pairs(key) do\n"
        "    local seen = see\n    other = seen\n  end\n"
        "  return function(a) return a.key end\nend\n"
        "local t = { key = 1, f = f }\n"
        "if t.key then\n  local key = t:see('key')\n  return key\nend\n"
        "for key = 1, 2 do\n  t[key] = key\nend\nreturn f\n"
    )
    assert problems(files(tmp_path, **USED, a=body)) == []


def test_the_engines_own_files_are_in_order() -> None:
    assert problems(LUA) == []
