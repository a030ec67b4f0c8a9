"""Builds one library of functions from the engine's scripts.

Each part of `lua/lib/` is a block of the library, after the blocks that it uses; each script is a
block with a function. A block declares its imports as local variables at its start, and stores its
exports in a table at its end. So a name costs as much as any local variable, and the limits of Lua
(200 local variables, 60 of them used by one function) apply to each block alone. The server creates
the closures of a library when it is loaded, not at every call. Values that must be new for each
call are in one table, `context`, which every call clears.

The names of the library and its functions contain a digest of the source, so that programs of
different versions can share a server. A server at its maxmemory accepts no library, but its jobs
must still run. So each script also has a plain source, for EVAL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from faena.engine.source import NO_ARGUMENTS, NOW, Arguments, Source, Sources, read

_SLOT = "faena_0"
"""A placeholder for the library's name until its digest is known."""

_FIRST = "take_in_first"
"""The function that a script with `--@arrivals` calls first."""

_NOW = "now_us"
"""The function that gives `now` in scripts that include the part."""

_GLOBALS = (
    "cmsgpack, error, ipairs, math, next, pairs, pcall, select, string, struct, table, tonumber, "
    "tostring, type, unpack"
)
"""Copied into local variables, because a function reads globals through a metatable, which is slow.
A library may not read them while it is loaded, so its first call does."""


@dataclass(frozen=True, slots=True)
class Script:
    """One atomic operation of the engine."""

    name: str
    function: str
    library: str
    """The source of the library, to be loaded if it is missing."""

    source: str
    """The same as one script for EVAL, if a server has no functions, or no memory for them."""

    sha: str
    """The digest for EVALSHA."""

    args: Arguments = NO_ARGUMENTS


@cache
def load(name: str) -> Script:
    """The script `lua/**/<name>.lua`, ready to be called."""
    sources = _sources()
    library, source = _library()
    plain = plain_source(sources, sources.scripts[name])
    sha = hashlib.sha1(plain.encode(), usedforsecurity=False).hexdigest()
    args = sources.scripts[name].args
    return Script(name, f"{library}_{name}", source, plain, sha, args)


def library_name() -> str:
    """The name of this version's library on servers."""
    return _library()[0]


def names() -> list[str]:
    """The names of all scripts."""
    return sorted(_sources().scripts)


@cache
def _sources() -> Sources:
    return read(Path(__file__).parent / "lua")


@cache
def _library() -> tuple[str, str]:
    """Its name and its source."""
    source = library_source(_sources())
    name = f"faena_{hashlib.sha256(source.encode()).hexdigest()[:10]}"
    return name, source.replace(_SLOT, name)


def library_source(sources: Sources) -> str:
    """All scripts and the parts they use, with a placeholder for the library's name."""
    scripts = [sources.scripts[name] for name in sorted(sources.scripts)]
    used = sources.needed(*scripts)
    head = [f"#!lua name={_SLOT}", *_OUTERMOST, *_frame(used)]
    parts = [_part(sources, part) for part in used]
    ways = sorted({_way(sources, script) for script in scripts})
    made = [line for number, way in enumerate(ways) for line in _made(number, way)]
    functions = [_function(sources, script, ways) for script in scripts]
    return "\n".join([*head, *parts, _REGISTER, *made, *functions])


def plain_source(sources: Sources, script: Source) -> str:
    """A script with only the parts that it uses."""
    flags = f" flags={','.join(script.flags)}" if script.flags else ""
    used = sources.needed(script)
    parts = [_part(sources, part) for part in used]
    caller, answer = (
        ("lib.noted", "lib.guarded(all)") if script.is_guarded else ("redis.call", "all()")
    )
    begun = [*_run(sources, script), f"call, context = {caller}, shared"]
    run = [*begun, *_ended(sources.endings(script)), f"return {answer}"]
    return "\n".join([f"#!lua{flags}", "local call, context", *_frame(used), *parts, *run])


def part_source(name: str) -> str:
    """A part and those it uses, with its exports as local variables."""
    sources = _sources()
    part = sources.parts[name]
    used = [*sources.needed(part), part]
    blocks = [_part(sources, one) for one in used]
    return "\n".join(["local call, context", *_frame(used), *blocks, _taken([*part.exports])])


def _frame(used: list[Source]) -> list[str]:
    """The code before all parts: the contexts, and a table for the exports of parts.

    A call has the context `shared`; code that runs separately inside a call has `apart`. Both are
    reused for all calls, and only tables that are not empty are replaced.
    """
    fields = [field for part in used for field in part.state]
    plain = [field for field in fields if field.value != "{}"]
    names, values = [f"c.{field.name}" for field in plain], [field.value for field in plain]
    tables = [f"c.{field.name}" for field in fields if field.value == "{}"]
    made = f"{{ {', '.join(f'{field.name} = {field.value}' for field in fields)} }}"
    return [
        f"local lib, shared, apart = {{}}, {made}, {made}",
        "local function cleared(c)",
        f"{', '.join(names)} = {', '.join(values)}" if plain else "",
        *(f"if next({name}) then {name} = {{}} end" for name in tables),
        "return c end",
        "local function fresh_context() return cleared(apart) end",
    ]


_OUTERMOST = (
    f"local function globals() return {_GLOBALS} end",
    f"local {_GLOBALS}",
    "local KEYS, ARGV, call, context",
)

_REGISTER = f"""local guarded, noted = lib.guarded, lib.noted
local function register(name, flags, run)
redis.register_function{{ function_name = '{_SLOT}_' .. name, flags = flags, callback = run }}
end"""

_Way = tuple[bool, tuple[str, ...]]
"""How a script is called: whether it is rolled back when it fails, and what runs after it."""


def _way(sources: Sources, script: Source) -> _Way:
    return script.is_guarded, tuple(sources.endings(script))


def _made(number: int, way: _Way) -> list[str]:
    """A Lua function that wraps a script for registration; scripts of one way share it."""
    is_guarded, endings = way
    if is_guarded:
        before, caller, answer = _ended(endings), "noted", ["return guarded(all)"]
    else:
        before, caller, answer = [], "redis.call", _answered(endings)
    begin = [
        "return function(keys, args)",
        f"if not next then {_GLOBALS} = globals() end",
        f"KEYS, ARGV, call, context = keys, args, {caller}, cleared(shared)",
    ]
    return [f"local function way_{number}(run)", *before, *begin, *answer, "end", "end"]


def _ended(endings: Sequence[str]) -> list[str]:
    """A Lua function that runs a script's body, and then the endings."""
    return ["local function all()", *_answered(endings), "end"]


def _answered(endings: Sequence[str]) -> list[str]:
    behind = [f"lib.{name}()" for name in endings]
    return ["local answer = run()", *behind, "return answer"] if behind else ["return run()"]


def _part(sources: Sources, part: Source) -> str:
    given = ", ".join(f"lib.{name}" for name in part.exports)
    ending = f"{given} = {', '.join(part.exports)}" if given else ""
    return "\n".join([f"do {_taken(sources.imports(part))}", part.code, ending, "end"])


def _function(sources: Sources, script: Source, ways: list[_Way]) -> str:
    """A script in its block."""
    flags = ", ".join(f"'{flag}'" for flag in script.flags)
    way = f"way_{ways.index(_way(sources, script))}"
    ending = f"register('{script.name}', {{ {flags} }}, {way}(run))"
    return "\n".join(["do", *_run(sources, script), ending, "end"])


def _run(sources: Sources, script: Source) -> list[str]:
    """The body becomes a function: a chunk may have at most 200 local variables."""
    names, given = {*sources.imports(script)}, script.args.locals()
    if NOW in script.includes:
        given = {"now": f"{_NOW}()", **given}
        names.add(_NOW)
    before = [f"local {', '.join(given)} = {', '.join(given.values())}"] if given else []
    if script.is_preceded:
        names.add(_FIRST)
        before.insert(0, f"{_FIRST}()")
    return [_taken(sorted(names)), "local function run()", *before, script.code, "end"]


def _taken(names: list[str]) -> str:
    """The exports of other parts, as local variables."""
    if not names:
        return ""
    return f"local {', '.join(names)} = {', '.join(f'lib.{name}' for name in names)}"
