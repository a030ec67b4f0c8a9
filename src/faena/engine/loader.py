"""The engine's scripts as the server keeps them: one library of functions.

Every file of `lua/` becomes a function, in a block with the library parts it includes, once and in
order. The server makes a library's closures when it is loaded, not at every call. What a part must
have new at each call stands in its `--@each` line, an assignment that the function begins with.

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
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

_INCLUDE = re.compile(r"^--@include (.+)$", re.MULTILINE)
_EACH = re.compile(r"^--@each (.+)$", re.MULTILINE)
_FLAGS = re.compile(r"^--@flags (.+)$", re.MULTILINE)
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
    """The same as one script, for EVAL."""


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
    source = "\n".join([f"#!lua name={_SLOT}", "local KEYS, ARGV, call", *blocks])
    library = f"faena_{hashlib.sha256(source.encode()).hexdigest()[:10]}"
    source = source.replace(_SLOT, library)
    return {
        name: Script(name, f"{library}_{name}", source, _alone(piece))
        for name, piece in pieces.items()
    }


class _Piece(NamedTuple):
    """A script and all it uses."""

    parts: list[str]
    each: list[str]
    body: str
    flags: list[str]


def _read(root: Traversable, name: str) -> _Piece:
    body = (root / f"{name}.lua").read_text("utf-8")
    parts = list(_parts(root, body, set()))
    each = [line for part in parts for line in _EACH.findall(part)]
    flags = [flag for line in _FLAGS.findall(body) for flag in line.split()]
    return _Piece([_code(part) for part in parts], each, _code(body), flags)


def _block(name: str, piece: _Piece) -> str:
    """A function in its block; `call` is there only while a function runs."""
    flags = ", ".join(f"'{flag}'" for flag in piece.flags)
    return "\n".join(
        [
            "do",
            *piece.parts,
            f"redis.register_function{{ function_name = '{_SLOT}_{name}', flags = {{ {flags} }},",
            "callback = function(keys, args)",
            *("KEYS, ARGV, call = keys, args, redis.call", *piece.each),
            piece.body,
            "end }",
            "end",
        ]
    )


def _alone(piece: _Piece) -> str:
    """As a script. Its body is a function too: a chunk may have 200 local variables and no more."""
    flags = f" flags={','.join(piece.flags)}" if piece.flags else ""
    return "\n".join(
        [
            f"#!lua{flags}",
            *("local call = redis.call", *piece.parts, *piece.each),
            *("return (function()", piece.body, "end)()"),
        ]
    )


def _parts(root: Traversable, body: str, seen: set[str]) -> Iterator[str]:
    for line in _INCLUDE.findall(body):
        for name in (text.strip() for text in line.split(",")):
            if name not in seen:
                seen.add(name)
                text = (root / "lib" / f"{name}.lua").read_text("utf-8")
                yield from _parts(root, text, seen)
                yield text


def _root() -> Traversable:
    return resources.files("faena.engine") / "lua"


def _code(text: str) -> str:
    """Without whole-line comments: they cost the server nothing but memory in every node."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
