"""Reads what a page of metrics tells: a snapshot of the broker, and what this process measured.

A broker that does not answer in time costs its own numbers only: the page says so by
`faena_broker_up`, and has what the process knows by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from faena.engine.wire.patience import at_most
from faena.errors import StoreError
from faena.options.metrics import Metrics
from faena.telemetry.measured import Measurements
from faena.telemetry.metrics.exposition import Exposition, check_extra, written
from faena.telemetry.metrics.family import families
from faena.telemetry.metrics.metric import Facts
from faena.telemetry.snapshot import Snapshot

_WITHIN_S: Final = 5.0
"""Prometheus waits ten seconds for a page, unless it is told otherwise."""

Reading = Callable[[], Coroutine[Any, Any, Snapshot]]


async def page_of(
    app: str,
    options: Metrics,
    reading: Reading,
    measured: Measurements | None,
    *,
    openmetrics: bool,
) -> Exposition:
    """The page of one process; `reading` is called if it has the broker's numbers."""
    check_extra()
    facts, problem = Facts(measured=measured, tenants=options.tenants), None
    if measured is None or options.broker:
        snapshot, problem = await _read(reading)
        facts = facts._replace(snapshot=snapshot, is_up=snapshot is not None)
    found = families(facts, aliases=options.aliases)
    body, kind = written(app, found, openmetrics=openmetrics)
    return Exposition(body=body, content_type=kind, problem=problem)


async def _read(reading: Reading) -> tuple[Snapshot | None, str | None]:
    try:
        async with asyncio.timeout(_WITHIN_S):
            with at_most(_WITHIN_S):
                return await reading(), None
    except TimeoutError:
        return None, f"the broker did not answer within {_WITHIN_S:g} s"
    except (StoreError, OSError) as error:
        return None, str(error)
