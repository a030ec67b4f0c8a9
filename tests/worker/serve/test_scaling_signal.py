"""`/scaling` of workers: what an autoscaler reads, also while the broker is out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests._support.command import Service
from tests._support.eventually import eventually
from tests._support.probe import answers, get
from tests._support.valkey import Server, free_port

PROGRAM = "tests._support.cli_app"
TARGET = f"{PROGRAM}:app"


async def test_an_autoscaler_reads_the_slots_wanted_of_each_queue(
    program: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "log"
    environ |= {"FAENA_SERVE": str(port)}
    with Service("worker", TARGET, log=log, **environ):
        await eventually(lambda: answers(port, "/ready", 200))
        await program.take.enqueue_many([0.0] * 20)
        await eventually(lambda: _is_measured(port))
        found = (await get(port, "/scaling")).document
        signal = found["queues"]["work"]
        assert (signal["slots"], signal["ready"], signal["slots_wanted"]) == (4, 0, 1)
        assert found["at"] > 0
        assert signal["wait_ratio"] >= 0


async def _is_measured(port: int) -> bool:
    told = await get(port, "/scaling")
    one = told.document["queues"]["work"] if told.status == 200 else {}
    return one.get("ready") == 0 and one.get("service_s") is not None


async def test_without_the_broker_there_is_no_signal_rather_than_a_wrong_one(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    port, log = free_port(), tmp_path / "log"
    with Server() as server:
        environ = {"FAENA_URL": server.url, "LEDGER": os.environ["LEDGER"]}
        with Service("worker", TARGET, log=log, FAENA_SERVE=str(port), **environ):
            await eventually(lambda: answers(port, "/scaling", 200))
            server.pause()
            try:
                await eventually(lambda: answers(port, "/scaling", 503))
                assert "problem" in (await get(port, "/scaling")).document
            finally:
                server.resume()
            await eventually(lambda: answers(port, "/scaling", 200))
