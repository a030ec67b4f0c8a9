"""The layers that CONTRIBUTING shows are those that `./dev check` enforces."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_contributing_shows_the_layers_that_are_enforced() -> None:
    assert _shown() == _contracts()["layers"]["layers"]


def test_a_module_without_a_layer_fails_the_check() -> None:
    assert all(one["exhaustive"] for one in _contracts().values() if one["type"] == "layers")


def _contracts() -> dict[str, dict[str, list[str]]]:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    return {one["name"]: one for one in project["tool"]["importlinter"]["contracts"]}


def _shown() -> list[str]:
    text = (_ROOT / "CONTRIBUTING.md").read_text()
    _, _, after = text.partition("Imports go downwards only")
    return re.findall(r"^    (\S.*)$", after.partition("\n## ")[0], re.MULTILINE)
