"""What a worker process makes when its server asks: its vitals, and pages of its app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from faena.errors import ConfigError
from faena.options.metrics import Metrics
from faena.telemetry.measured import Measurements
from faena.telemetry.metrics.exposition import Exposition
from faena.worker.serve.channel import About, Ask, read_told
from faena.worker.serve.reporter import Maker
from faena.worker.serve.vitals import Page, Vitals

_encode = msgspec.msgpack.Encoder().encode


class Pages(Protocol):
    """The part of an app that makes pages."""

    name: str
    metric_options: Metrics

    async def metrics(
        self, *, measured: Measurements | None = None, openmetrics: bool = False
    ) -> Exposition:
        """A page for Prometheus."""
        ...


def about(app: Pages) -> About:
    """What a server must know of an app to make a page without it."""
    return About(app.name, app.metric_options.tenants, app.metric_options.aliases)


def makers(app: Pages, vitals: Callable[[], Awaitable[Vitals]]) -> Mapping[str, Maker]:
    """What can be asked for, by the name of its path."""

    async def tell_vitals(_: Ask) -> bytes:
        return _encode(await vitals())

    async def tell_metrics(ask: Ask) -> bytes:
        measured = read_told(ask.tasks)
        return _encode(await _metrics(app, measured, is_modern=ask.is_modern))

    return {"vitals": tell_vitals, "metrics": tell_metrics}


async def _metrics(app: Pages, measured: Measurements, *, is_modern: bool) -> Page:
    try:
        made = await app.metrics(measured=measured, openmetrics=is_modern)
    except ConfigError as error:  # the package for pages is missing
        return Page(status=501, body=_encode_problem(error))
    return Page(body=made.body, content_type=made.content_type)


def _encode_problem(error: ConfigError) -> bytes:
    return msgspec.json.encode({"problem": str(error)}) + b"\n"
