"""One run: every measurement of every system, in rounds, so that noise hits all alike."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.adapter import Adapter, PeerFailed, make_ready
from bench.catalogue import WORKS, Peer, Work
from bench.environment import Unavailable, is_ready
from bench.measure import Meter, Plan
from bench.server import Server

_ONCE = frozenset({"idle"})  # a count of timers, not of speed: one look is enough


@dataclass(slots=True)
class Results:
    """Samples by work and system, and why anything is missing."""

    systems: list[Peer]
    works: list[Work]
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, system: str, figures: dict[str, float]) -> None:
        """Keep the wanted ones of a measurement's figures."""
        for work in self.works:
            if work.name in figures:
                by_system = self.samples.setdefault(work.name, {})
                by_system.setdefault(system, []).append(figures[work.name])

    def median(self, work: Work, system: Peer) -> float | None:
        """The figure that is reported; None when nothing could be measured."""
        samples = self.samples.get(work.name, {}).get(system.name)
        return statistics.median(samples) if samples else None

    def stands(self, system: Peer) -> bool:
        """Say whether nothing of this system was skipped or failed."""
        broken = {step.partition(" ")[0] for step in self.failed}
        return system.name not in self.skipped and system.name not in broken

    def figures(self) -> dict[str, dict[str, float | None]]:
        """Work → system → figure, rounded to what the noise allows."""
        return {
            work.name: {system.name: _rounded(self.median(work, system)) for system in self.systems}
            for work in self.works
        }


class Campaign:
    """Prepares the systems, then walks repetition by repetition through all measurements."""

    def __init__(self, server: Server, plan: Plan, scratch: Path, repeat: int) -> None:
        self._server = server
        self._meter = Meter(server, plan)
        self._scratch = scratch
        self._repeat = repeat
        self._began = time.monotonic()

    def run(self, systems: list[Peer], works: list[Work]) -> Results:
        """Measure everything asked for; a system that breaks never stops the others."""
        results = Results(systems, works)
        adapters = [a for peer in systems if (a := self._ready(peer, results)) is not None]
        steps = list(self._steps(adapters, works))
        for number, (repetition, group, adapter) in enumerate(steps, 1):
            name = adapter.peer.name
            where = f"[{number}/{len(steps)}] {self._clock()} {group:<8}{name:<12}"
            try:
                figures = self._meter.groups()[group](adapter)
            except PeerFailed as failure:
                results.failed[f"{name} {group}"] = str(failure)
                _say(f"{where} failed: {failure}")
            else:
                results.add(name, figures)
                _say(f"{where} round {repetition}: {_line(figures)}")
        return results

    def _steps(
        self, adapters: list[Adapter], works: list[Work]
    ) -> Iterator[tuple[int, str, Adapter]]:
        groups = list(dict.fromkeys(work.group for work in works))
        for repetition in range(1, self._repeat + 1):
            for group in groups:
                if group in _ONCE and repetition > 1:
                    continue
                turn = (repetition - 1) % max(len(adapters), 1)
                for adapter in adapters[turn:] + adapters[:turn]:
                    yield repetition, group, adapter

    def _ready(self, peer: Peer, results: Results) -> Adapter | None:
        if not is_ready(peer):
            _say(f"installing {peer.name} {peer.version}")
        try:
            return make_ready(peer, self._server.url, self._scratch)
        except (Unavailable, PeerFailed) as reason:
            results.skipped[peer.name] = str(reason)
            _say(f"skipping {peer.name}: {reason}")
            return None

    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes}:{seconds:02d}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _line(figures: dict[str, float]) -> str:
    return " · ".join(
        f"{name} {plain(figure)} {WORKS[name].unit}" for name, figure in figures.items()
    )


def plain(figure: float | None) -> str:
    """Write a figure as a reader wants it: three digits, or whole thousands with commas."""
    if figure is None:
        return "-"
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else float(f"{figure:.4g}")
