"""The engine's scripts as the server keeps them: one library of functions.

Every file of `lua/` becomes a function, in a block with the library parts it includes, once and in
order. The server makes a library's closures when it is loaded, not at every call. What a part must
have new at each call stands in its `--@each` line, an assignment that the function begins with.

A function of Lua has at most 200 local variables, so a part is a block of its own: of what it
declares, only the names that others use are declared outside.

The library and its functions bear a digest of the source in their names, so that programs of
different versions can share a server. A server at its maxmemory takes in no library, and must be
worked empty all the same: for that a script has its plain source as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

_INCLUDE = re.compile(r"^--@include (.+)$", re.MULTILINE)
_EACH = re.compile(r"^--@each (.+)$", re.MULTILINE)
_SURE = re.compile(r"^--@sure$", re.MULTILINE)
_ARRIVALS = re.compile(r"^--@arrivals( itself)?$", re.MULTILINE)
_FLAGS = re.compile(r"^--@flags (.+)$", re.MULTILINE)
_DECLARED = re.compile(r"^local (?:function (\w+)|([\w, ]+))", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_TAKE_IN = """local function take_in()
  arrived = 0
  local is_more = call('XLEN', KEYS[1] .. 'arrivals') > 0
  while is_more do
    arrived, is_more = arrive()
  end
end"""
_WAKE = "if arrived == 1 then call('ZADD', KEYS[1] .. 'wake', 0, 'work') end"
_SLOT = "faena_0"
"""Stands for the library's name until its digest is known."""


@dataclass(frozen=True, slots=True)
class Script:
    """One atomic operation of the engine."""

    name: str
    function: str
    library: str
    """The source that has the function, to be loaded where it is missing."""

    source: str
    """The same as one script, for EVAL: where a server has no functions, or no room for them."""

    sha: str
    """What EVALSHA calls it."""


@cache
def load(name: str) -> Script:
    """The script `lua/<name>.lua`, ready to be called."""
    return _scripts()[name]


def names() -> list[str]:
    """Every script there is."""
    return sorted(entry.name[:-4] for entry in _root().iterdir() if entry.name.endswith(".lua"))


@cache
def _scripts() -> dict[str, Script]:
    pieces = {name: _read(_root(), name) for name in names()}
    blocks = [_block(name, piece) for name, piece in pieces.items()]
    head = [f"#!lua name={_SLOT}", "local KEYS, ARGV, call", _journal(), _arrive()]
    source = "\n".join([*head, *blocks])
    library = f"faena_{hashlib.sha256(source.encode()).hexdigest()[:10]}"
    source = source.replace(_SLOT, library)
    return {name: _script(name, library, source, _alone(piece)) for name, piece in pieces.items()}


def _script(name: str, library: str, source: str, alone: str) -> Script:
    sha = hashlib.sha1(alone.encode(), usedforsecurity=False).hexdigest()
    return Script(name, f"{library}_{name}", source, alone, sha)


class _Piece(NamedTuple):
    """A script and all it uses."""

    parts: list[str]
    each: list[str]
    body: str
    flags: list[str]
    is_guarded: bool
    """Whether it is taken back when it fails; one that writes and is not says `--@sure`."""
    is_door: bool
    """Whether it takes in what arrived before it: it says `--@arrivals`."""
    before: list[str]
    """What it begins with: to take that in and wake a worker, unless it does so `itself`."""


def _read(root: Path, name: str) -> _Piece:
    body = (root / f"{name}.lua").read_text("utf-8")
    parts = list(_parts(root, body, set()))
    each = [line for part in parts for line in _EACH.findall(part)]
    flags = [flag for line in _FLAGS.findall(body) for flag in line.split()]
    codes = [_code(part) for part in parts]
    is_guarded = "no-writes" not in flags and not _SURE.search(body)
    arrivals = _ARRIVALS.search(body)
    is_door = arrivals is not None
    before = ["take_in()", _WAKE] if arrivals is not None and not arrivals.group(1) else []
    nested = _nested(codes, [*each, _code(body)])
    return _Piece(nested, each, _code(body), flags, is_guarded, is_door, before)


def _nested(parts: list[str], rest: list[str]) -> list[str]:
    """Each part in a block, behind the names of it that another part, or the rest, uses."""
    declared = [_declared(part) for part in parts]
    words = [_used(part) for part in parts]
    words.append(frozenset(word for text in rest for word in _WORD.findall(text)))
    return [
        _nest(part, names & frozenset[str]().union(*words[i + 1 :]))
        for i, (part, names) in enumerate(zip(parts, declared, strict=True))
    ]


@cache
def _declared(part: str) -> frozenset[str]:
    return frozenset(
        name
        for function, variables in _DECLARED.findall(part)
        for name in _WORD.findall(function or variables)
    )


@cache
def _used(part: str) -> frozenset[str]:
    """The words of a part that others must have declared."""
    return frozenset(_WORD.findall(part)) - _declared(part)


def _nest(part: str, exported: frozenset[str]) -> str:
    def assigned(found: re.Match[str]) -> str:
        """A declaration as an assignment, where the names in it are declared outside."""
        function, variables = found.groups()
        names = [function] if function else _WORD.findall(variables)
        if exported.isdisjoint(names):
            return found.group()
        own = ", ".join(name for name in names if name not in exported)
        before = f"local {own}; " if own else ""
        if function:
            return f"function {function}"
        has_value = part.startswith("=", found.end())
        return before + (f"{variables} " if has_value else "")

    outside = f"local {', '.join(sorted(exported))}" if exported else ""
    return "\n".join([outside, "do", _DECLARED.sub(assigned, part), "end"])


def _block(name: str, piece: _Piece) -> str:
    """A function in its block; `call` is there only while a function runs."""
    flags = ", ".join(f"'{flag}'" for flag in piece.flags)
    caller = "noted" if piece.is_guarded else "redis.call"
    return "\n".join(
        [
            "do",
            *piece.parts,
            *("local function run()", *piece.before, piece.body, "end"),
            f"redis.register_function{{ function_name = '{_SLOT}_{name}', flags = {{ {flags} }},",
            "callback = function(keys, args)",
            *(f"KEYS, ARGV, call = keys, args, {caller}", *piece.each),
            "return guarded(run)" if piece.is_guarded else "return run()",
            "end }",
            "end",
        ]
    )


def _alone(piece: _Piece) -> str:
    """As a script. Its body is a function too: a chunk may have 200 local variables and no more."""
    flags = f" flags={','.join(piece.flags)}" if piece.flags else ""
    head = [_journal(), "local call = noted"] if piece.is_guarded else ["local call = redis.call"]
    if piece.is_door:
        head.append(_arrive())
    run = "return guarded(run)" if piece.is_guarded else "return run()"
    body = ["local function run()", *piece.before, piece.body, "end", run]
    return "\n".join([f"#!lua{flags}", *head, *piece.parts, *piece.each, *body])


@cache
def _arrive() -> str:
    """What takes in the jobs that came without a script, as a function for all others."""
    text = "--@include arrivals"
    parts = list(_parts(_root(), text, set()))
    each = [line for part in parts for line in _EACH.findall(part)]
    function = ["arrive = function()", *each, "return take_in_arrivals()", "end"]
    nested = _nested([_code(part) for part in parts], [*each, "take_in_arrivals"])
    return "\n".join(["local arrive, arrived", "do", *nested, *function, "end", _TAKE_IN])


@cache
def _journal() -> str:
    """What takes back a call that fails, outside all scripts."""
    return _nest(_code(_part(_root(), "journal")), frozenset({"noted", "guarded"}))


def _parts(root: Path, body: str, seen: set[str]) -> Iterator[str]:
    for line in _INCLUDE.findall(body):
        for name in (text.strip() for text in line.split(",")):
            if name not in seen:
                seen.add(name)
                text = _part(root, name)
                yield from _parts(root, text, seen)
                yield text


@cache
def _part(root: Path, name: str) -> str:
    return (root / "lib" / f"{name}.lua").read_text("utf-8")


def _root() -> Path:
    return Path(__file__).parent / "lua"


@cache
def _code(text: str) -> str:
    """Without whole-line comments: they cost the server nothing but memory in every node."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
