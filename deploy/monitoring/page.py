"""The files that are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from deploy.monitoring.dashboard import DASHBOARDS
from deploy.monitoring.written import rules

ROOT: Final = Path(__file__).parents[1]

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "prometheus/faena.rules.yml": rules,
    **{f"grafana/{one.name}.json": one.written for one in DASHBOARDS},
}
