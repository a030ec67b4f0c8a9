"""The page on explanations has every reason, as the code has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faena.inspection.reason import REASONS, Reason

_ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"\| `(\w+)` \| (.+?) \| (.*?) ?\|")


def test_the_page_has_every_reason_and_what_must_happen_next() -> None:
    page = (_ROOT / "docs/explain.md").read_text().partition("## All reasons")[2]
    rows = [match.groups() for line in page.splitlines() if (match := _ROW.fullmatch(line))]
    assert rows == [(code, one.meaning, one.next) for code, one in REASONS.items()]


def test_every_reason_is_tried_on_a_real_job() -> None:
    tests = "".join(
        path.read_text()
        for path in [
            *(_ROOT / "tests/inspection").glob("test_explained_*.py"),
            _ROOT / "tests/pg/test_explained.py",
            _ROOT / "tests/resilience/test_upstreams_explained.py",
        ]
    )
    assert not [code for code in REASONS if f'"{code}"' not in tests]


@pytest.mark.parametrize("code", REASONS)
def test_what_must_happen_next_is_a_sentence_whatever_the_details_are(code: str) -> None:
    names = re.findall(r"\{(\w+)\}", REASONS[code].next)
    reason = Reason(code=code, words="x", details=dict.fromkeys(names, "{queue}{0}%s"))
    assert reason.next.count("{queue}{0}%s") == len(names)
