"""`faena dev`: a worker that restarts when the code changes.

At every change a new worker process is started; once it serves, it replaces the old one. If it
cannot start, the error is shown and the old process continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import click

from faena.cli import log
from faena.cli.argument import Whole, common, example, split, words
from faena.cli.output import Output
from faena.cli.serve_option import OFF, serve_at
from faena.cli.worker import command
from faena.errors import ConfigError
from faena.worker.serve.address import ServeAddress
from faena.worker.supervise.supervisor import Supervisor, SupervisorOptions
from faena.worker.supervise.worker_slot import WorkerSlotOptions

_GRACE_S = 2.0
_OPTIONS = SupervisorOptions(reloads_on_hangup=False, slot=WorkerSlotOptions(grace_s=_GRACE_S))

_log = logging.getLogger("faena.dev")


@click.command(epilog=example("faena dev shop.tasks:app"))
@words("[MODULE:APP]")
@click.option("--concurrency", type=Whole(1, 10_000), help="Jobs to run at a time.")
@serve_at(
    default=OFF,
    words="Also answer /health, /ready and /metrics there: a port, or host:port.",
    shown="off",
)
@common
@click.pass_obj
def dev(
    output: Output, words: tuple[str, ...], concurrency: int | None, serve: ServeAddress | None
) -> int:
    """Run a worker that restarts when Python files below the current directory change.

    If neither the app nor FAENA_URL names a broker, an embedded Valkey is used, with its data in
    .faena/.
    """
    target, _ = split(words)
    changes = _changes(Path.cwd())
    log.configure("pretty", "info")
    args = [target, "--log-format", "pretty", "--log-jobs", "--grace", f"{_GRACE_S:.0f}s"]
    if concurrency is not None:
        args += ["--concurrency", str(concurrency)]
    options = replace(_OPTIONS, serve=serve)
    code = asyncio.run(_Follower(command(*args), options).run(changes))
    if output.is_json:
        output.say({"code": code}, "")
    return code


class _Follower:
    """Runs a supervisor; starts it again if the app could not start and the code has changed."""

    def __init__(self, argv: list[str], options: SupervisorOptions) -> None:
        self._argv, self._options = argv, options
        self._supervisor: Supervisor | None = None
        self._changed = asyncio.Event()

    async def run(self, changes: AsyncIterator[object]) -> int:
        following = asyncio.create_task(self._follow(changes))
        try:
            while True:
                self._supervisor = supervisor = Supervisor(self._argv, self._options)
                code = await supervisor.run()
                if supervisor.is_stopping:
                    return code
                self._supervisor = None
                _log.error("the app could not start; waiting for a change of the code")
                await self._changed.wait()
                self._changed.clear()
        finally:
            following.cancel()
            await asyncio.wait({following})

    async def _follow(self, changes: AsyncIterator[object]) -> None:
        async for _ in changes:
            if self._supervisor is None:
                self._changed.set()
            else:
                _log.info("the code has changed")
                self._supervisor.reload()


def _changes(directory: Path) -> AsyncIterator[object]:
    """Yields whenever Python files below the directory have changed."""
    try:
        from watchfiles import PythonFilter, awatch  # noqa: PLC0415 - only for development
    except ImportError:
        raise ConfigError(
            "faena dev needs the extra reload: install it "
            "(in a clone of Faena: pip install '.[reload]')"
        ) from None
    return awatch(directory, watch_filter=PythonFilter())
