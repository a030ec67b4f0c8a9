"""One process of a stage: `python -m apps.stage.part DIRECTORY api PORT | worker POOL`.

It stops as on SIGTERM when its standard input ends: when the stage closes, or dies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Final

_GRACE: Final = "5s"


def main() -> int:
    """Serve until the standard input ends."""
    _, _directory, kind, what = sys.argv  # the directory tells whose process it is
    threading.Thread(target=_stop_with_input, daemon=True).start()
    return _serve_api(int(what)) if kind == "api" else _serve_pool(what)


def _stop_with_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _serve_pool(pool: str) -> int:
    from faena.cli import main as faena  # noqa: PLC0415 - the other kind does not need it

    sys.argv = ["faena", "worker", "apps.campotech.main:app", "--pool", pool, "--name", pool]
    sys.argv += ["--grace", _GRACE, "--log-level", "warning", "--serve", "off"]
    return faena()


def _serve_api(port: int) -> int:
    from apps.campotech.api.__main__ import serve  # noqa: PLC0415 - as above

    return serve(port=port)


if __name__ == "__main__":
    sys.exit(main())
