"""Tests that take seconds run first, so that none of them is left when all others are done."""

from __future__ import annotations

import pytest

_LONG = (
    "test_batches_stopped",
    "test_demo",
    "test_dev",
    "test_embedded",
    "test_examples",
    "test_faults_",
    "test_shards",
    "test_chaos",
    "test_pages",
    "test_poison",
    "test_reaching",
    "test_recurrence",
    "test_redrive",
    "test_stuck",
    "test_supervisor",
    "test_threads",
    "test_typed_payloads",
    "test_types",
    "test_wire_",
    "_machine",
)
"""What the names of files contain whose tests wait for real processes, or search."""


def longest_first(items: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """Reordered for so many processes, each of which begins with an even part of the list."""
    slow = [item for item in items if any(word in item.path.name for word in _LONG)]
    known = set(slow)
    rest = [item for item in items if item not in known]
    share = -(-len(rest) // processes)
    ordered: list[pytest.Item] = []
    for process in range(processes):
        ordered += slow[process::processes]
        ordered += rest[process * share : (process + 1) * share]
    return ordered
