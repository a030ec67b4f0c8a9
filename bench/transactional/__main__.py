"""Drives one adapter by the harness's orders and answers with one line of JSON on stdout.

probe                         import the adapter: a broken environment shows before measuring
prepare                       make the system's tables
commits COUNT SIZE            COUNT transactions one after another, of SIZE jobs each
pace COUNT INTERVAL_S         transactions of one job, evenly spaced; the instants before COMMIT
worker SLOTS                  run a worker until killed
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import sys
import time
from types import ModuleType
from typing import Any

from bench.peers.protocol import run
from bench.transactional.protocol import Transact

_WARM = 20


def _nothing() -> None:
    pass


async def commits(transact: Transact, count: str, size: str) -> dict[str, Any]:
    """Time transactions; those that warm it up are counted, not timed."""
    number, began = 0, 0.0
    for one in range(_WARM + int(count)):
        if one == _WARM:
            began = time.perf_counter()
        await transact(range(number, number + int(size)), _nothing)
        number += int(size)
    return {"jobs": number, "seconds": time.perf_counter() - began}


async def pace(transact: Transact, count: str, interval_s: str) -> dict[str, Any]:
    """Lone transactions on an idle system."""
    instants: list[int] = []
    began = time.perf_counter()
    for number in range(int(count)):
        await asyncio.sleep(began + number * float(interval_s) - time.perf_counter())
        await transact([number], lambda: instants.append(time.monotonic_ns()))
    return {"instants": instants}


async def obey(adapter: ModuleType, command: str, arguments: list[str]) -> None:
    """Connect, obey one order, print the answer."""
    url = os.environ["BENCH_URL"]
    if command == "prepare":
        await adapter.prepare(url)
        print("{}", flush=True)
        return
    order = {"commits": commits, "pace": pace}[command]
    async with adapter.connect(url) as transact:
        print(json.dumps(await order(transact, *arguments)), flush=True)


def main() -> None:
    """Import the named adapter and carry out one order."""
    name, command, *arguments = sys.argv[1:]
    logging.basicConfig(level=logging.ERROR)
    adapter = importlib.import_module(f"bench.transactional.{name}")
    if command == "probe":
        print(json.dumps({"name": name}))
    elif command == "worker":
        adapter.work(os.environ["BENCH_URL"])
    else:
        run(obey(adapter, command, arguments))


if __name__ == "__main__":
    main()
