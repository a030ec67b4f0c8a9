"""Rules as the YAML that Prometheus reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from deploy.monitoring.rule import ALERTS, RECORDED, Alert, Recorded

NOTE = "Written by `./dev deploy` out of deploy/monitoring: change that, then run it."


def rules() -> str:
    """The whole file."""
    lines = [f"# {NOTE}", "groups:", *_group("faena recorded", map(_recorded, RECORDED))]
    for name, alerts in ALERTS.items():
        lines += _group(f"faena {name}", map(_alert, alerts))
    return "\n".join(lines) + "\n"


def _group(name: str, rules: Iterable[list[str]]) -> Iterator[str]:
    yield f"  - name: {name}"
    yield "    rules:"
    for rule in rules:
        yield from rule


def _recorded(one: Recorded) -> list[str]:
    return [f"      - record: {one.name}", f"        expr: {_text(one.query)}"]


def _alert(one: Alert) -> list[str]:
    return [
        f"      - alert: {one.name}",
        f"        expr: {_text(one.query)}",
        f"        for: {one.lasting}",
        "        labels:",
        f"          severity: {one.severity}",
        "        annotations:",
        f"          summary: {_text(one.summary)}",
    ]


def _text(text: str) -> str:
    """In single quotes unless it has some: in YAML, nothing in them means anything else."""
    return f"'{text}'" if "'" not in text else json.dumps(text, ensure_ascii=False)
