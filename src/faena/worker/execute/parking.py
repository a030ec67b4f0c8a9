"""Parks jobs that this worker cannot run but another might, with the reason; logged once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from faena.declaring.handler import Handler
from faena.errors import nearest
from faena.job import Spec
from faena.outcomes import Snoozed
from faena.values.names import as_words

_PARK_US: Final = 15_000_000
"""How long a job of an unknown task waits for a worker that knows it."""
_MOST_TOLD: Final = 1000
"""Producers choose the names, so their number has no bound."""

_log = logging.getLogger("faena.worker")


class Parking:
    """Parks jobs of one queue whose task, or its version, this worker does not know."""

    def __init__(self, queue: str, handlers: Mapping[str, Handler]) -> None:
        self._queue = queue
        self._handlers = handlers
        self._told: set[tuple[str, int]] = set()

    def park(self, spec: Spec) -> Snoozed:
        """Park a job; the first one of its kind is logged."""
        known = self._handlers.get(spec.task)
        what = f"version {spec.version} of task {spec.task!r}" if known else f"task {spec.task!r}"
        kind = spec.task, spec.version if known else 0
        if kind not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(kind)
            self._log_parked(spec, as_words(what))
        return Snoozed(_PARK_US, as_words(f"no worker here knows {what}"), is_parked=True)

    def _log_parked(self, spec: Spec, what: str) -> None:
        known = self._handlers.get(spec.task)
        hint = (
            f"this worker has version {known.version}"
            if known
            else nearest(spec.task, self._handlers)
        )
        _log.warning(
            "queue %s: this worker does not know %s (%s): its jobs wait for a worker that does; "
            "start one, or cancel the jobs and enqueue them under the right name",
            self._queue,
            what,
            hint,
            extra={"queue": self._queue, "task": spec.task},
        )
