"""`faena worker`: processes that run jobs, under a supervisor or alone."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import Any, Final

import click

from faena.cli import log, serving
from faena.cli.app_lookup import find_app
from faena.cli.argument import DURATION, RATE, SIZE, Whole, common, example, split, words
from faena.cli.output import Output
from faena.cli.serve_option import DEFAULT, serve_at
from faena.limits import Limit
from faena.pool import SERVES
from faena.values.duration import to_s
from faena.values.numbers import read_whole
from faena.worker.serve.address import ServeAddress
from faena.worker.serve.reporter import from_environ
from faena.worker.supervise.lifeline import Lifeline
from faena.worker.supervise.supervisor import Supervisor, SupervisorOptions
from faena.worker.supervise.worker_slot import WorkerSlotOptions

_MAX: Final = "WORKER_RATE_LIMIT_MAX"
_DURATION: Final = "WORKER_RATE_LIMIT_DURATION"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class _Kept(click.Command):
    """Keeps its arguments, to start worker processes with them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["faena.args"] = tuple(args)
        return super().parse_args(ctx, args)


def _check_name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _NAME.fullmatch(value):
        raise click.BadParameter(f"it must be letters, digits, '.', '_' or '-', got {value!r}")
    return value


def _rate_of_environ() -> Limit | None:
    """WORKER_RATE_LIMIT_MAX jobs per WORKER_RATE_LIMIT_DURATION milliseconds."""
    most, per_ms = os.environ.get(_MAX), os.environ.get(_DURATION) or "60000"
    if not most:
        return None
    for name, text in ((_MAX, most), (_DURATION, per_ms)):
        number = read_whole(text)
        if not isinstance(number, int) or number < 1:
            raise click.UsageError(f"{name} must be a whole number of at least 1, got {text!r}")
    return Limit(max=int(most), per=f"{int(per_ms)}ms")


@click.command(
    cls=_Kept,
    epilog=example(
        "faena worker shop.tasks:app",
        "faena worker shop.tasks:app --pool high --instances 2 --memory 512Mi",
        "WORKER_POOL=high FAENA_APP=shop.tasks:app faena worker",
    ),
)
@words("[MODULE:APP]")
@click.option("--pool", envvar="WORKER_POOL", help="The worker pool to run.")
@click.option("--queues", help="Queues to serve, such as mail,invoice.  [default: all]")
@click.option(
    "--concurrency",
    type=Whole(1, 10_000),
    envvar="WORKER_CONCURRENCY",
    help="The most jobs that one process runs at a time.",
)
@click.option(
    "--instances", type=Whole(1, 100), help="Worker processes.  [default: the pool's, or 1]"
)
@click.option(
    "--grace",
    type=DURATION,
    default="30s",
    show_default=True,
    help="How long running jobs may continue after SIGTERM.",
)
@click.option(
    "--serves",
    type=click.Choice(SERVES),
    help="Which shards: all, the shared ones, or those dedicated to one tenant."
    "  [default: the pool's, or all]",
)
@click.option("--memory", type=SIZE, help="Memory above which a process is replaced: 512Mi.")
@click.option("--rate", type=RATE, help="The most jobs that one process starts: 100/min.")
@click.option(
    "--name",
    envvar="WORKER_ID",
    callback=_check_name,
    help="The worker's name in leases and logs.  [default: host and process]",
)
@click.option(
    "--stuck",
    type=DURATION,
    default="15s",
    show_default=True,
    help="How long the event loop may stay blocked after a job's timeout.",
)
@serve_at(
    default=DEFAULT,
    words="Where to answer /health, /ready and /metrics: a port, host:port, or off.",
    shown="127.0.0.1:3001, if it is free",
)
@click.option(
    "--no-supervise", is_flag=True, help="Run one worker in this process, without a supervisor."
)
@click.option(
    "--log-format",
    type=click.Choice(log.STYLES, case_sensitive=False),
    envvar="LOG_FORMAT",
    help="How log lines are written.  [default: pretty on a terminal, else plain]",
)
@click.option(
    "--log-level",
    type=click.Choice(log.LEVELS, case_sensitive=False),
    envvar="LOG_LEVEL",
    default="info",
    show_default=True,
    help="The lowest level to log.",
)
@click.option("--log-jobs", is_flag=True, hidden=True)
@common
@click.pass_context
def worker(ctx: click.Context, words: tuple[str, ...], **options: Any) -> int:
    """Run the jobs of the app's queues until SIGTERM or Ctrl-C.

    Running jobs then have --grace to end; the others are released without using an attempt. A
    second signal releases them at once. SIGHUP replaces the processes one by one.

    Options that are not given are read from the environment: WORKER_POOL, WORKER_ID,
    WORKER_CONCURRENCY, WORKER_RATE_LIMIT_MAX, WORKER_RATE_LIMIT_DURATION (ms), FAENA_SERVE,
    LOG_LEVEL, LOG_FORMAT.
    """
    target, _ = split(words)
    given = _given(ctx, options)
    log.configure(options["log_format"], options["log_level"])
    if options["no_supervise"]:
        return _work(ctx.obj, target, given, options["serve"], logs_jobs=options["log_jobs"])
    return supervise(
        ctx.obj,
        ctx.meta["faena.args"],
        SupervisorOptions(
            instances=options["instances"],
            reloads_on_hangup=not is_at_terminal(),
            slot=WorkerSlotOptions(grace_s=to_s("grace", given.grace)),
            serve=options["serve"],
        ),
    )


def _given(ctx: click.Context, options: dict[str, Any]) -> serving.Given:
    """Combine the options; flags take precedence over the environment."""
    pool, queues = options["pool"], options["queues"]
    if pool and queues:
        if ctx.get_parameter_source("pool") is not click.core.ParameterSource.ENVIRONMENT:
            raise click.UsageError("give --pool or --queues, not both")
        pool = None
    names = tuple(name.strip() for name in (queues or "").split(",") if name.strip())
    if queues is not None and not names:
        raise click.UsageError("--queues must name at least one queue, got none")
    return serving.Given(
        pool=pool,
        queues=names or None,
        name=options["name"],
        concurrency=options["concurrency"],
        memory=options["memory"],
        serves=options["serves"],
        rate=options["rate"] or _rate_of_environ(),
        grace=options["grace"],
        stuck=options["stuck"],
    )


def _work(
    output: Output,
    target: str,
    given: serving.Given,
    address: ServeAddress | None,
    *,
    logs_jobs: bool,
) -> int:
    """Under a supervisor, that answers; alone, this process does."""
    line, reports = Lifeline.from_environ(os.environ), from_environ(os.environ)
    app = find_app(target)
    if logs_jobs:
        app.middleware = (*app.middleware, log.JobLog())
    plan = serving.make_plan(app, given, is_supervised=line is not None)
    if line is not None:
        address = None
    code = serving.run(app, plan, serving.Ties(line, reports, address))
    if line is None and output.is_json:
        output.say({"worker": plan.options.name, "code": code}, "")
    return code


def supervise(output: Output, args: tuple[str, ...], options: SupervisorOptions) -> int:
    """Run worker processes with the same arguments under a supervisor."""
    supervisor = Supervisor(command(*args), options)
    code = asyncio.run(supervisor.run())
    if output.is_json:
        told = {
            "instances": supervisor.instances,
            "restarts": supervisor.restarts,
            "code": code,
        }
        output.say(told, "")
    return code


def command(*args: str) -> list[str]:
    """The command line of one worker; -P stops the user's files from shadowing our imports."""
    return [sys.executable, "-P", "-m", "faena", "worker", "--no-supervise", *args]


def is_at_terminal() -> bool:
    """Whether SIGHUP would mean that the terminal was closed."""
    return sys.stdin is not None and sys.stdin.isatty()
