"""What a worker process makes when its server asks: its vitals, and pages of its app."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

import msgspec

from faena.engine.wire.patience import at_most
from faena.errors import ConfigError, StoreError
from faena.options.metrics import Metrics
from faena.telemetry.advice.scaling import Scaling
from faena.telemetry.measured import Measurements
from faena.telemetry.metrics.exposition import Exposition
from faena.worker.serve.channel import About, Ask, read_told
from faena.worker.serve.reporter import Maker
from faena.worker.serve.server_check import ServerCheck, check_all
from faena.worker.serve.vitals import Page, Vitals

_BROKER_S: Final = 5.0
"""How long the broker may take to say what scaling needs."""

_encode = msgspec.msgpack.Encoder().encode


class Pages(Protocol):
    """The part of an app that makes pages."""

    name: str
    metric_options: Metrics
    servers: dict[str, ServerCheck]

    async def metrics(
        self, *, measured: Measurements | None = None, openmetrics: bool = False
    ) -> Exposition:
        """A page for Prometheus."""
        ...

    async def scaling(self) -> Scaling:
        """A signal for autoscalers."""
        ...


def about(app: Pages) -> About:
    """What a server must know of an app to make a page without it."""
    return About(app.name, app.metric_options.tenants, app.metric_options.aliases)


def makers(app: Pages, vitals: Callable[[], Awaitable[Vitals]]) -> Mapping[str, Maker]:
    """What can be asked for, by the name of its path."""

    async def tell_vitals(_: Ask) -> bytes:
        seen, servers = await asyncio.gather(vitals(), check_all(app.servers))
        return _encode(msgspec.structs.replace(seen, servers=servers))

    async def tell_metrics(ask: Ask) -> bytes:
        measured = read_told(ask.tasks)
        return _encode(await _metrics(app, measured, is_modern=ask.is_modern))

    async def tell_scaling(_: Ask) -> bytes:
        return _encode(await _scaling(app))

    return {"vitals": tell_vitals, "metrics": tell_metrics, "scaling": tell_scaling}


async def _metrics(app: Pages, measured: Measurements, *, is_modern: bool) -> Page:
    try:
        made = await app.metrics(measured=measured, openmetrics=is_modern)
    except ConfigError as error:  # the package for pages is missing
        return Page(status=501, body=_encode_problem(error))
    return Page(body=made.body, content_type=made.content_type)


async def _scaling(app: Pages) -> Page:
    """Without the broker there is no signal: an autoscaler then keeps what there is."""
    try:
        async with asyncio.timeout(_BROKER_S):
            with at_most(_BROKER_S):
                found = await app.scaling()
    except TimeoutError:
        problem = f"the broker did not answer within {_BROKER_S:g} s"
        return Page(status=503, body=_encode_problem(problem))
    except (StoreError, OSError) as error:
        return Page(status=503, body=_encode_problem(error))
    return Page(body=msgspec.json.encode(found.to_dict()) + b"\n")


def _encode_problem(problem: object) -> bytes:
    return msgspec.json.encode({"problem": str(problem)}) + b"\n"
