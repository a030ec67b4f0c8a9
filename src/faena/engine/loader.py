"""Scripts as they are sent: each file with the library parts it includes, once and in order.

A script's local functions are made anew at every call, which for a large script costs more than a
few commands. A part named by `--@lazy` is therefore wrapped: its functions are made only when the
one that bears the part's name is called.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from faena.errors import InternalError

_INCLUDE = re.compile(r"^--@(include|lazy) (.+)$", re.MULTILINE)
_ONCE = re.compile(r"^--@once$", re.MULTILINE)
_SHEBANG = re.compile(r"^#!lua[^\n]*\n")


@dataclass(frozen=True, slots=True)
class Script:
    """One atomic operation of the engine."""

    name: str
    source: str
    sha: str


@cache
def load(name: str) -> Script:
    """The script `lua/<name>.lua`, ready to be sent."""
    root = resources.files("faena.engine") / "lua"
    body = (root / f"{name}.lua").read_text("utf-8")
    shebang = _SHEBANG.match(body)
    head = shebang.group() if shebang else "#!lua\n"
    parts = [_code(part) for part in _parts(root, body, set())]
    source = head + "\n".join([*parts, _code(_SHEBANG.sub("", body))])
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


def names() -> list[str]:
    """Every script there is."""
    root = resources.files("faena.engine") / "lua"
    return sorted(entry.name[:-4] for entry in root.iterdir() if entry.name.endswith(".lua"))


def _parts(root: Traversable, body: str, seen: set[str]) -> Iterator[str]:
    for match in _INCLUDE.finditer(body):
        kind, names_text = match.groups()
        for name in (text.strip() for text in names_text.split(",")):
            if name not in seen:
                seen.add(name)
                yield from _lazy(root, name, seen) if kind == "lazy" else _part(root, name, seen)


def _part(root: Traversable, name: str, seen: set[str]) -> Iterator[str]:
    text = (root / "lib" / f"{name}.lua").read_text("utf-8")
    yield from _parts(root, text, seen)
    yield text


def _lazy(root: Traversable, name: str, seen: set[str]) -> Iterator[str]:
    """What the part includes beyond what is there already is made with it, and gone with it."""
    inner = list(_part(root, name, set(seen)))
    if any(_ONCE.search(text) for text in inner):
        raise InternalError(f"lazy part {name} would get its own copy of a part with state")
    lines = "\n".join(map(_code, inner))
    yield f"local function {name}(...)\n{lines}\nreturn {name}(...)\nend"


def _code(text: str) -> str:
    """Without whole-line comments: they cost the server nothing but memory in every node."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
