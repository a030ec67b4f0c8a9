"""Log lines with the fields of the running job, for logging configurations of your own.

faena.logging.configure("json")                       # all of it, as `faena worker` does
{"()": "faena.logging.JsonFormatter"}                 # a formatter in a dictConfig
{"()": "faena.logging.JobFilter"}                     # the fields, for another formatter
structlog.configure(processors=[faena.logging.add_job, …])
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from faena.telemetry.logging.bound import bound_fields
from faena.telemetry.logging.field import JobFilter
from faena.telemetry.logging.format import JsonFormatter, PlainFormatter, PrettyFormatter
from faena.telemetry.logging.setup import configure

__all__ = [
    "JobFilter",
    "JsonFormatter",
    "PlainFormatter",
    "PrettyFormatter",
    "add_job",
    "configure",
]


def add_job(
    _logger: Any, _name: str, event_dict: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A processor of structlog: adds the fields of the running job that an event does not have."""
    for name, value in bound_fields().items():
        event_dict.setdefault(name, value)
    return event_dict
