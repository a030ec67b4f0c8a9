"""The measuring programs are run seldom: they must at least be those of today's engine."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
MODULES = sorted(path.stem for path in BENCH.glob("*.py") if not path.stem.startswith("__"))


@pytest.mark.parametrize("module", MODULES)
def test_every_measuring_program_can_be_imported(module: str) -> None:
    importlib.import_module(f"bench.{module}")
