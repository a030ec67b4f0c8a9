"""How a check of the sources ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def told(kind: str, findings: Sequence[object]) -> int:
    """Write each to standard error; returns the exit code."""
    for finding in findings:
        sys.stderr.write(f"{kind}: {finding}\n")
    return 1 if findings else 0
