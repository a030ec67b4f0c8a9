"""`@queue.task` keeps the payload's and the result's types, for those who run a type checker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_EXPECTED = re.compile(r"# error: (\w+)")


def complaints() -> dict[str, list[dict[str, Any]]]:
    """What the type checker says of both files in its strict mode, by file."""
    pages = ("handlers.py", "mistakes.py")
    ran = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", *(str(HERE / one) for one in pages)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(ran.stdout)
    assert told["summary"]["filesAnalyzed"] == len(pages)
    found = told["generalDiagnostics"]
    return {page: [one for one in found if Path(one["file"]).name == page] for page in pages}


def test_tasks_have_the_types_of_their_handlers_and_slips_are_found_where_they_are_made() -> None:
    told = complaints()
    good = [(one["range"]["start"]["line"] + 1, one["message"]) for one in told["handlers.py"]]
    assert good == []
    lines = (HERE / "mistakes.py").read_text("utf-8").splitlines()
    expected = {
        (number, found.group(1))
        for number, line in enumerate(lines, start=1)
        if (found := _EXPECTED.search(line))
    }
    found = {(one["range"]["start"]["line"] + 1, one["rule"]) for one in told["mistakes.py"]}
    assert expected <= found
    assert {line for line, _ in found} == {line for line, _ in expected}
