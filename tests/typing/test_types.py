"""`@queue.task` keeps the payload's and the result's types, for those who run a type checker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_EXPECTED = re.compile(r"# error: (\w+)")


def read(page: str) -> list[dict[str, Any]]:
    """The complaints of the type checker about one file, in its strict mode."""
    ran = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", str(HERE / page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    told = json.loads(ran.stdout)
    assert told["summary"]["filesAnalyzed"] == 1
    return told["generalDiagnostics"]


@pytest.mark.timeout(90)
def test_tasks_have_the_types_of_their_handlers() -> None:
    assert [
        (one["range"]["start"]["line"] + 1, one["message"]) for one in read("handlers.py")
    ] == []


@pytest.mark.timeout(90)
def test_slips_are_found_where_they_are_made() -> None:
    lines = (HERE / "mistakes.py").read_text("utf-8").splitlines()
    expected = {
        (number, found.group(1))
        for number, line in enumerate(lines, start=1)
        if (found := _EXPECTED.search(line))
    }
    found = {(one["range"]["start"]["line"] + 1, one["rule"]) for one in read("mistakes.py")}
    assert expected <= found
    assert {line for line, _ in found} == {line for line, _ in expected}
