"""Finds what has grown past the size at which the house style asks to look again.

`python -m tests._support.sizes` lists the offenders and fails when there are any. What is long for
a reason says so: `# size: reason` (`-- size: reason` in Lua) on the line of the def or class, or in
the first five lines of the file.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from tests._support.findings import told

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("src", "apps", "tests", "bench", "deploy", "examples")

SOURCE_FILE = 400
TEST_FILE = 500
FUNCTION = 40
CLASS = 300
LUA_SCRIPT = 120
LUA_FUNCTION = 60

_WAIVER = re.compile(r"(#|--) size: \S")
_LUA_FUNCTION = re.compile(
    r"^( *)(?:local )?function ([\w.:]+)|^( *)(?:local )?([\w.]+) = function"
)


class Offender(NamedTuple):
    """Something too long."""

    where: str
    lines: int
    most: int

    def __str__(self) -> str:
        return f"{self.where} has {self.lines} lines, look again at {self.most}"


def offenders(root: Path) -> list[Offender]:
    """Everything too long under the places where we write code."""
    found: list[Offender] = []
    for place in PLACES:
        for path in sorted((root / place).rglob("*.*")):
            read = {".py": measure_python, ".lua": measure_lua}.get(path.suffix)
            if read is not None and "node_modules" not in path.parts:
                found += read(path.relative_to(root), path.read_text("utf-8"))
    return found


def measure_python(path: Path, text: str) -> Iterator[Offender]:
    """A file, and each function and class in it."""
    lines = text.splitlines()
    yield from _measure_file(path, lines, TEST_FILE if path.parts[0] == "tests" else SOURCE_FILE)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            most = CLASS if isinstance(node, ast.ClassDef) else FUNCTION
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > most and not _WAIVER.search(lines[node.lineno - 1]):
                yield Offender(f"{path}:{node.lineno} {node.name}", length, most)


def measure_lua(path: Path, text: str) -> Iterator[Offender]:
    """A script, or a part of the library, and each function in it."""
    lines = text.splitlines()
    if "lib" not in path.parts:
        header = sum(1 for _ in takewhile(lambda line: line.startswith("--"), lines))
        yield from _measure_file(path, lines, LUA_SCRIPT + header)
    for number, line in enumerate(lines):
        match = _LUA_FUNCTION.match(line)
        if match:
            indent, name = match.group(1) or match.group(3) or "", match.group(2) or match.group(4)
            length = _lua_length(lines[number:], indent)
            if length > LUA_FUNCTION and not _WAIVER.search(line):
                yield Offender(f"{path}:{number + 1} {name}", length, LUA_FUNCTION)


def _lua_length(lines: list[str], indent: str) -> int:
    """Up to the `end` that stands as deep as the function."""
    ending = re.compile(rf"^{indent}end\b")
    return next((i + 1 for i, line in enumerate(lines) if ending.match(line)), 1)


def _measure_file(path: Path, lines: list[str], most: int) -> Iterator[Offender]:
    if len(lines) > most and not any(_WAIVER.search(line) for line in lines[:5]):
        yield Offender(str(path), len(lines), most)


if __name__ == "__main__":
    sys.exit(told("size", offenders(ROOT)))
