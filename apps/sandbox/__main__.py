"""Serves the stand-ins of all outside services until it is stopped (Ctrl-C, SIGTERM).

    python -m apps.sandbox --port 8900 --file sandbox.env &
    set -a; . ./sandbox.env

It prints what a program must be told to use them: as `export` lines, or with `--json` as an object.
With `--file` the same is in a file that only its owner can read, from the moment at which requests
are answered, and the file is gone when they are not. What drivers can do: `apps.sandbox.control`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from apps.sandbox.sandbox import Sandbox

URL: Final = "SANDBOX_URL"
_CHARTER: Final = "Serves the stand-ins of all outside services until it is stopped."
_LAST_PORT: Final = 65_535
_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM)


def main(given: Sequence[str] | None = None) -> int:
    """Serve until a signal comes."""
    asked = _parser().parse_args(given)
    if asked.most_entries is not None and asked.most_entries < 1:
        _parser().error("--most-entries must be 1 or more")
    for name, port in (("--port", asked.port), ("--smtp-port", asked.smtp_port)):
        if not 0 <= port <= _LAST_PORT:
            _parser().error(f"{name} must be 0 to {_LAST_PORT}, got {port}")
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(asked))
    except OSError as error:
        print(f"the sandbox cannot be served: {error}", file=sys.stderr)  # noqa: T201 - a program
        return 1
    return 0


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not available on every system
    except ImportError:
        return None
    return uvloop.Loop


async def _serve(asked: argparse.Namespace) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for one in _ENDINGS:
        loop.add_signal_handler(one, stopped.set)
    sandbox = Sandbox(most_entries=asked.most_entries)
    async with sandbox.serving(asked.port, asked.smtp_port) as url:
        environment = {URL: url, **sandbox.environment(url)}
        with _written(asked.file, environment):
            shown = json.dumps(environment) if asked.json else _exports(environment)
            print(shown, flush=True)  # noqa: T201 - a program
            await stopped.wait()


@contextmanager
def _written(file: Path | None, environment: Mapping[str, str]) -> Generator[None]:
    """Whole or not at all: who waits for the file must not read half of it."""
    if file is None:
        yield
        return
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.touch(mode=0o600)
    part.write_text(
        "".join(f"{name}={shlex.quote(value)}\n" for name, value in environment.items())
    )
    part.replace(file)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            file.unlink()


def _exports(environment: Mapping[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m apps.sandbox", description=_CHARTER)
    parser.add_argument(
        "--port", type=int, default=0, help="of all services; by default a free one"
    )
    parser.add_argument("--smtp-port", type=int, default=0, help="of the mail server; the same")
    parser.add_argument("--json", action="store_true", help="print an object instead of exports")
    parser.add_argument("--file", type=Path, help="write the variables there, for `set -a; . FILE`")
    parser.add_argument(
        "--most-entries", type=int, help="what each ledger keeps at least; by default all"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
