"""`python -m bench`: choose systems and works, measure, report."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rich.console import Console

from bench.campaign import Campaign
from bench.catalogue import FAENA, SYSTEMS, WORKS, Peer, Work
from bench.environment import is_ready
from bench.measure import QUICK, Plan
from bench.report import machine, print_tables, write_files
from bench.server import running_server

_T = TypeVar("_T")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"bench: {message}\n")


def _parser() -> _Parser:
    parser = _Parser(prog="./dev bench", allow_abbrev=False, description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="short measurements, one round")
    add("--peers", metavar="A,B", help="measure faena beside these only")
    add("--work", metavar="A,B", help="take these figures only; `latency` means both percentiles")
    add("--repeat", type=int, metavar="N", help="rounds whose median is reported (default 3)")
    add("--json", action="store_true", help="end stdout with one JSON object: work, system, figure")
    add("--list", action="store_true", help="show the systems and the works, measure nothing")
    return parser


def main() -> int:
    """Run the harness; 2 for a wrong argument, 130 when interrupted."""
    parser = _parser()
    options = parser.parse_args()
    try:
        systems, works = _systems(options.peers), _works(options.work)
        repeat = _repeat(options)
    except ValueError as mistake:
        parser.error(str(mistake))
    if options.list:
        _print_list()
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _measure(options, systems, works, repeat)
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130


def _measure(
    options: argparse.Namespace, systems: list[Peer], works: list[Work], repeat: int
) -> int:
    plan = QUICK if options.quick else Plan()
    with (
        tempfile.TemporaryDirectory(prefix="faena-bench-") as scratch,
        running_server(Path(scratch)) as server,
    ):
        about: dict[str, Any] = {
            "server": f"Valkey {server.version()}",
            "machine": machine(),
            "quick": options.quick,
            "repeat": repeat,
        }
        results = Campaign(server, plan, Path(scratch), repeat).run(systems, works)
    print_tables(results, Console(stderr=options.json))
    for path in write_files(results, about):
        print(f"wrote {path}", file=sys.stderr)
    if options.json:
        print(json.dumps(results.figures()))
    return 0 if results.stands(FAENA) else 1


def _systems(names: str | None) -> list[Peer]:
    """faena always comes first: figures of two runs are not comparable."""
    chosen = _split(names, "peer", SYSTEMS)
    return [FAENA, *(peer for peer in chosen if peer is not FAENA)]


def _works(names: str | None) -> list[Work]:
    both = {"latency": "latency_p50,latency_p99"}
    spelled = None if names is None else ",".join(both.get(n, n) for n in names.split(","))
    return _split(spelled, "work", WORKS)


def _split(names: str | None, what: str, known: dict[str, _T]) -> list[_T]:
    if names is None:
        return list(known.values())
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise ValueError(f"{what} must be one of {', '.join(known)}, got {name!r}")
    return [known[name] for name in dict.fromkeys(wanted)]


def _repeat(options: argparse.Namespace) -> int:
    repeat = options.repeat if options.repeat is not None else 1 if options.quick else 3
    if repeat < 1:
        raise ValueError(f"--repeat must be at least 1, got {repeat}")
    return repeat


def _print_list() -> None:
    for peer in SYSTEMS.values():
        state = "ready" if is_ready(peer) else "to be installed"
        print(f"{peer.name:<24}{peer.version or 'this checkout':<16}{state}")
    print()
    for work in WORKS.values():
        aim = "more" if work.more_is_better else "less"
        print(f"{work.name:<24}{work.unit:<16}{aim} is better")


if __name__ == "__main__":
    sys.exit(main())
