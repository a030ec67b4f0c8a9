"""Show that no job is lost, run without a reason, or run out of order.

Two parts: a storm, in which workers and their broker are killed, frozen, cut off and restarted
under load, with ledgers kept outside the engine; then the searches, which are the model tests and
the tests of faults with FAENA_SEARCH=full, as far as the time goes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.chaos.search import Search
from tests.chaos.storm import Storm
from tests.chaos.verdict import FOUND, Verdict

_ROUND_S = 60.0
_SHARES = {"all": (2 / 3, 1 / 3), "storm": (1.0, 0.0), "search": (0.0, 1.0)}


class Chaos:
    """One run, and what it tells."""

    def __init__(self, minutes: float, seed: int, only: str, workers: int) -> None:
        self._storm_s, self._search_s = (60 * minutes * share for share in _SHARES[only])
        self._seed = seed
        self._again = f"./dev chaos --minutes {minutes:g} --seed {seed} --workers {workers}"
        self._again += "" if only == "all" else f" --only {only}"
        self.directory = Path(tempfile.mkdtemp(prefix="faena-chaos-"))
        self.storm = Storm(seed, self.directory, workers)
        self.search = Search(seed, self.directory)
        self._complaints: list[str] = []
        self._open = 0
        self.is_interrupted = False
        self._ends_at = 0.0

    async def run(self) -> None:
        """Both parts; the first interruption ends them in quiet, the second at once."""
        running = asyncio.create_task(self._run())
        telling = asyncio.create_task(self._tell())

        def interrupt() -> None:
            if self.is_interrupted:
                running.cancel()
            else:
                _say("ending: waiting for open jobs; once more to stop at once")
            self.is_interrupted = True
            self.storm.over.set()
            self.search.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, interrupt)
        await asyncio.wait({running})
        telling.cancel()
        if not running.cancelled():
            running.result()

    async def _run(self) -> None:
        self._ends_at = time.monotonic() + self._storm_s
        if self._storm_s:
            async with self.storm.opened():
                await self._run_storm()
        self._ends_at = time.monotonic() + self._search_s
        if self._search_s and not self.is_interrupted:
            await self.search.run(self._search_s)

    async def _run_storm(self) -> None:
        try:
            while (left := self._ends_at - time.monotonic()) > 0 and not self.is_interrupted:
                await self.storm.round(min(left, _ROUND_S))
            self._complaints = await self.storm.audit()
        except asyncio.CancelledError:
            self._open = self.storm.conclude(is_cut_short=True)
            raise

    async def _tell(self) -> None:
        while True:
            left_s = max(0.0, self._ends_at - time.monotonic())
            words = f"{int(left_s // 60)}:{int(left_s % 60):02d} left, {self.storm.words}"
            _say(f"{words}, {self.search.words}" if self._search_s else words)
            await asyncio.sleep(1 if sys.stderr.isatty() else 10)

    @property
    def is_sound(self) -> bool:
        return not (self.storm.found or self._complaints or self.search.failed)

    def report(self) -> dict[str, Any]:
        """Everything that is known at the end."""
        total = Verdict()
        for one in self.storm.verdicts.values():
            total.add(one)
        return {
            "is_sound": self.is_sound,
            "seed": self._seed,
            "again": self._again,
            "queues": {name: one.counts for name, one in self.storm.verdicts.items()},
            "total": total.counts,
            "open": self._open,
            "faults": dict(self.storm.faults.most_common()),
            "searches": {"ended": self.search.ended, "failed": self.search.failed},
            "audit": self._complaints,
            "found": {kind: jobs[:20] for kind, jobs in total.found.items() if jobs},
            "ledgers": None if self.is_sound else str(self.directory),
        }


def table(report: dict[str, Any]) -> str:
    """The same for eyes."""
    heads, searches = ("accepted", *FOUND), report["searches"]
    lines = [" " * 10 + "".join(head.rjust(13) for head in heads)]
    for name, counts in {**report["queues"], "all": report["total"]}.items():
        lines.append(name.ljust(10) + "".join(f"{counts[head]:13,}" for head in heads))
    faults = ", ".join(f"{kind} {number}" for kind, number in report["faults"].items())
    lines += [f"faults    {faults or 'none'}"]
    lines += [f"searches  {searches['ended']} ended, {len(searches['failed'])} failed"]
    lines += [f"open      {report['open']} jobs, of which nothing is known"] * bool(report["open"])
    lines += [f"{kind}: {job}" for kind, jobs in report["found"].items() for job in jobs]
    lines += [f"audit: {line}" for line in report["audit"]]
    lines += [f"failed: {name}" for name in searches["failed"]]
    lines += [f"ledgers   {report['ledgers']}"] * (not report["is_sound"])
    return "\n".join([*lines, f"again     {report['again']}"])


def _say(words: str) -> None:
    end = "\r" if sys.stderr.isatty() else "\n"
    sys.stderr.write(f"{words:<99}{end}")
    sys.stderr.flush()


def main(arguments: list[str]) -> int:
    """0 when nothing was found, 1 when something was, 130 when it was interrupted before."""
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long, about (default: 10)")
    parser.add_argument("--seed", type=int, help="which jobs and faults come, in which order")
    parser.add_argument("--workers", type=int, default=4, help="worker processes (default: 4)")
    parser.add_argument("--only", choices=[*_SHARES], default="all", help="one part alone")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    if given.minutes <= 0 or given.workers <= 0:
        parser.error("--minutes and --workers must be more than 0")
    seed = secrets.randbelow(1_000_000) if given.seed is None else given.seed
    chaos = Chaos(given.minutes, seed, given.only, given.workers)
    asyncio.run(chaos.run())
    report = chaos.report()
    sys.stdout.write((json.dumps(report) if given.json else f"\n{table(report)}") + "\n")
    if not chaos.is_sound:
        return 1
    shutil.rmtree(chaos.directory, ignore_errors=True)
    return 130 if chaos.is_interrupted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
