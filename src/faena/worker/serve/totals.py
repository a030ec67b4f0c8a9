"""What all worker processes have measured, those that have ended included.

Counters of a page may only grow: Prometheus takes one that falls for a restart, and counts what is
left a second time. So what a process said last is kept when it dies.
"""

from __future__ import annotations

from faena.telemetry.measured import Measured, Measurements


class Totals:
    """Of one server, while it lives."""

    def __init__(self) -> None:
        self._ended: Measurements = {}
        self._of: dict[object, Measurements] = {}

    def tell(self, process: object, measured: Measurements) -> None:
        """What a process has measured of some tasks since it began."""
        self._of.setdefault(process, {}).update(measured)

    def end(self, process: object) -> None:
        """A process has ended."""
        for names, one in self._of.pop(process, {}).items():
            self._ended.setdefault(names, Measured()).add(one)

    def together(self) -> Measurements:
        """All of them added up."""
        found: Measurements = {}
        for measured in (self._ended, *self._of.values()):
            for names, one in measured.items():
                found.setdefault(names, Measured()).add(one)
        return found
