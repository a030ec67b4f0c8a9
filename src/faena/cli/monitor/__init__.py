"""`faena monitor`: queues, jobs and what keeps them, live on a terminal and driven by keys."""

from __future__ import annotations

import sys

import click

from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import LASTING, by, common, example, split, words
from faena.cli.output import Output
from faena.errors import ConfigError
from faena.values.duration import to_s


@click.command(epilog=example("faena monitor shop.tasks:app", "faena monitor --every 5s --by ana"))
@words("[MODULE:APP]")
@click.option("--every", type=LASTING, default="2s", show_default=True, help="How often to look.")
@by
@common
@click.pass_obj
def monitor(output: Output, words: tuple[str, ...], *, every: str, by: str) -> None:
    """Watch queues, jobs, dead letters, tenants, workers and alerts, and act on them.

    Keys: 1 to 7 choose a list, Enter opens a row, Escape goes back, / finds, q leaves; what may be
    done with a row stands below it. It needs a terminal: programs use `faena status --json`.
    """
    app = find_app(split(words)[0])
    if output.is_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("faena monitor needs a terminal: use `faena status` in a pipe")
    try:
        from faena.cli.monitor.screen import Monitor  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigError(
            "faena monitor needs the extra monitor: install it "
            "(in a clone of Faena: pip install '.[monitor]')"
        ) from None
    shown = Monitor(app, by=by, every_s=to_s("every", every))
    session.run(app, shown.run_async)
