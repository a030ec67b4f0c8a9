"""`faena metrics`: the page that Prometheus scrapes, printed or served."""

from __future__ import annotations

import asyncio
import signal
import sys

import click

from faena.app import Faena
from faena.cli.app_lookup import find_app
from faena.cli.argument import Whole, common, example, split, words
from faena.cli.metrics_server import serving
from faena.cli.output import Output
from faena.telemetry.metrics.exposition import Exposition, check_extra
from faena.worker.supervise.signals import handling


@click.command(
    epilog=example(
        "faena metrics shop.tasks:app",
        "faena metrics --openmetrics",
        "faena metrics --serve 9400 --host 0.0.0.0",
    )
)
@words("[MODULE:APP]")
@click.option("--openmetrics", is_flag=True, help="Print it in OpenMetrics.")
@click.option(
    "--serve",
    "port",
    type=Whole(0, 65535),
    metavar="PORT",
    help="Serve it at /metrics, and the signal for autoscalers at /scaling, until SIGTERM or "
    "Ctrl-C; 0 takes a free port.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where --serve listens.")
@common
@click.pass_obj
def metrics(
    output: Output, words: tuple[str, ...], *, openmetrics: bool, port: int | None, host: str
) -> None:
    """Print the metrics of all queues, the broker, upstreams and features for Prometheus.

    Times of jobs are on the pages of the workers that ran them. Exit code 1 if the broker did not
    answer; a page that is served says so by faena_broker_up.
    """
    app = find_app(split(words)[0])
    check_extra()
    if port is not None:
        asyncio.run(_serve(output, app, host, port))
        return
    page = asyncio.run(_read(app, openmetrics=openmetrics))
    if output.is_json:
        told = {"content_type": page.content_type, "page": page.body.decode()}
        output.show({**told, "problem": page.problem}, lambda _: None)
    else:
        sys.stdout.write(page.body.decode())
    if page.problem is not None:
        raise click.ClickException(f"the numbers of the broker are missing: {page.problem}")


async def _read(app: Faena, *, openmetrics: bool) -> Exposition:
    try:
        return await app.metrics(openmetrics=openmetrics)
    finally:
        await app.close()


async def _serve(output: Output, app: Faena, host: str, port: int) -> None:
    stop = asyncio.Event()
    try:
        signals = {signal.SIGTERM: stop.set, signal.SIGINT: stop.set}
        with handling(signals), serving(app, host, port) as url:
            output.say({"url": url}, f"metrics of {app.name} at {url}")
            await stop.wait()
    finally:
        await app.close()
