"""Scripts as they are sent: each file with the library parts it includes, once and in order."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

_INCLUDE = re.compile(r"^--@include (.+)$", re.MULTILINE)
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
        for name in match.group(1).split(","):
            part = name.strip()
            if part not in seen:
                seen.add(part)
                text = (root / "lib" / f"{part}.lua").read_text("utf-8")
                yield from _parts(root, text, seen)
                yield text


def _code(text: str) -> str:
    """Without whole-line comments: they cost the server nothing but memory in every node."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
