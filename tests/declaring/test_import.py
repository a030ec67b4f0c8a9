"""What importing the package loads: as little as its user needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import faena

PROGRAM = """
import sys
from faena import Faena, Retry

app = Faena("shop")
app.queue("mail", retry=Retry.never())
print(*sys.modules)
"""
LATER = ("faena.worker.worker", "cronsim", "zoneinfo", "multiprocessing", "importlib.metadata")


def test_a_program_that_only_enqueues_does_not_load_what_runs_jobs() -> None:
    argv = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(argv, capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "faena.app" in loaded
    assert loaded.isdisjoint(LATER)


def test_names_are_where_type_checkers_look_for_them() -> None:
    tree = ast.parse(Path(faena.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == faena._MODULES
    assert sorted(seen) == sorted(faena.__all__)


def test_every_name_and_module_can_be_had_and_no_other() -> None:
    assert all(getattr(faena, name) for name in faena.__all__)
    assert set(faena.__all__) <= set(dir(faena))
    assert faena.testing.harness
    with pytest.raises(AttributeError, match="module 'faena' has no attribute 'Fanea'"):
        _ = faena.Fanea
