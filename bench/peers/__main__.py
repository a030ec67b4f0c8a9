"""Drives one adapter by the harness's orders and answers with one line of JSON on stdout.

probe                         import the adapter: a broken environment shows before measuring
bulk KIND COUNT               put COUNT jobs in, a tenth of them untimed to warm up
single SECONDS                one awaited enqueue after another for that long
pace COUNT INTERVAL_S         one `stamp` job at a time, evenly spaced
worker SLOTS                  run a worker until killed; SLOTS 0 leaves the number to the adapter
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

from bench.peers.protocol import Producer, payload, run

_CHUNK = 1000
_WARM_MAX = 500


async def bulk(producer: Producer, kind: str, count: str) -> dict[str, float]:
    """Time the bulk path over everything after the warm-up."""
    jobs = [payload(kind, number) for number in range(int(count))]
    warm = min(len(jobs) // 10, _WARM_MAX)
    await producer.enqueue_many(jobs[:warm])
    began = time.perf_counter()
    for start in range(warm, len(jobs), _CHUNK):
        await producer.enqueue_many(jobs[start : start + _CHUNK])
    return {"jobs": len(jobs) - warm, "seconds": time.perf_counter() - began}


async def single(producer: Producer, seconds: str) -> dict[str, float]:
    """Time one caller that waits for each answer before it sends the next job."""
    for number in range(100):
        await producer.enqueue(payload("noop", number))
    jobs, began = 0, time.perf_counter()
    while time.perf_counter() < began + float(seconds):
        await producer.enqueue(payload("noop", jobs))
        jobs += 1
    return {"jobs": jobs, "seconds": time.perf_counter() - began}


async def pace(producer: Producer, count: str, interval_s: str) -> dict[str, float]:
    """Send lone jobs to an idle worker; the worker notes how long each took to start."""
    began = time.perf_counter()
    for number in range(int(count)):
        await asyncio.sleep(began + number * float(interval_s) - time.perf_counter())
        await producer.enqueue(payload("stamp", number))
    return {"jobs": int(count), "seconds": time.perf_counter() - began}


async def produce(adapter: ModuleType, command: str, arguments: list[str]) -> None:
    """Connect, obey one order, print the answer."""
    order = {"bulk": bulk, "single": single, "pace": pace}[command]
    async with adapter.connect(os.environ["BENCH_URL"]) as producer:
        print(json.dumps(await order(producer, *arguments)), flush=True)


def main() -> None:
    """Import the named adapter and carry out one order."""
    name, command, *arguments = sys.argv[1:]
    logging.basicConfig(level=logging.ERROR)
    adapter = importlib.import_module(f"bench.peers.{name}")
    if command == "probe":
        print(json.dumps({"name": name}))
    elif command == "worker":
        adapter.work(os.environ["BENCH_URL"], int(arguments[0]) or None)
    else:
        run(produce(adapter, command, arguments))


if __name__ == "__main__":
    main()
