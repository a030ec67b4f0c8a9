"""Has the pytest of the searches tell of a failure when it happens: its end may never come."""

from __future__ import annotations

import sys

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Once, in the process that hears of the others."""
    if report.failed and hasattr(report, "node"):
        sys.stdout.write(f"\n{report.nodeid}\n{report.longreprtext}\n")
        sys.stdout.writelines(f"-- {name}\n{text}\n" for name, text in report.sections)
