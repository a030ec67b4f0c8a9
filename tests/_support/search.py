"""How far the long searches go: a fixed sample in every run, all of it with FAENA_SEARCH=full.

The sample is the same in every run, so that a change is green or red by itself and not by luck.
The full search takes hours and begins where FAENA_SEED (a number, 0 by default) says;
FAENA_EXAMPLES is how many examples each search tries at most.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests._support.valkey import Server

IS_FULL = os.environ.get("FAENA_SEARCH") == "full"
SEED = int(os.environ.get("FAENA_SEED", "0"))
MOST = int(os.environ.get("FAENA_EXAMPLES", "1000000"))

_PARTS = 1000


def searching(sample: int, full: int = 1000, **options: Any) -> settings:
    """Settings for so many examples; how long one takes is the machine's affair."""
    options.setdefault("suppress_health_check", list(HealthCheck))
    return settings(
        max_examples=min(full, MOST) if IS_FULL else sample,
        deadline=None,
        derandomize=not IS_FULL,
        database=None,
        **options,
    )


def run_machine(machine: Any, server: Server, part: int, options: settings) -> None:
    """One part of a machine's search; every part has a seed of its own."""
    machine.server = server
    run_state_machine_as_test(seed(SEED * _PARTS + part)(machine), settings=options)
