"""Scripts that fail because a test says so, on a real server."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from faena.engine import engine, script_library
from faena.engine.script_library import Script

_numbers = itertools.count(1)


def make_fail(patch: pytest.MonkeyPatch, name: str, fault: str) -> None:
    """Have a script run some Lua before its body, in this program."""
    failing = _with_fault(script_library.load(name), fault)
    patch.setattr(engine, "load", lambda one: failing if one == name else script_library.load(one))


def _with_fault(script: Script, fault: str) -> Script:
    at = script.library.index(f"('{script.name}', {{")
    begin = script.library.rindex("local function run()\n", 0, at) + len("local function run()\n")
    library = f"{script.library[:begin]}{fault}\n{script.library[begin:]}"
    former, latter = script.function.removesuffix(f"_{script.name}"), f"failing_{next(_numbers)}"
    return replace(
        script,
        function=script.function.replace(former, latter),
        library=library.replace(former, latter),
    )
