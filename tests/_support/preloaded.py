"""What the fork server has imported and built before it forks (`forked.py`)."""

from __future__ import annotations

from importlib import import_module

from faena.engine import script_library

for _name in (
    "faena.cli.dev",
    "faena.cli.dlq",
    "faena.cli.worker",
    "faena.worker.worker",
    "tests._support.lane_app",
    "tests._support.charging_app",
    "tests._support.feature_app",
    "tests._support.alert_process",
    "tests._support.schedule_process",
    "tests._support.upstream_app",
    "tests._support.outbox_process",
):
    import_module(_name)
script_library.load("exchange")
