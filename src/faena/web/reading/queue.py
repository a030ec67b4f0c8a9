"""Queues: how they are, what happened in them, and the settings in force."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from faena.engine.overview import Overview
from faena.options.settings import Settings
from faena.sharding.view import ShardsView
from faena.telemetry.snapshot import QueueSnapshot
from faena.telemetry.statistics import QueueStatistics, Series
from faena.tenancy.shares import Shares
from faena.web.reading.reading import Limited, Many, Paged, Reading, Rows, Wanted


class Window(msgspec.Struct, forbid_unknown_fields=True):
    """Which time is meant."""

    window: str = "1h"
    """How long it is: 1m to 30d."""
    until: datetime | None = None
    """When it ends, with a time zone; none: now."""


class Steps(msgspec.Struct, forbid_unknown_fields=True):
    """Which time is meant, and how it is divided."""

    window: str = "24h"
    """How long it is: 1m to 30d."""
    step: str = "5m"
    """How long a step is: whole minutes."""
    until: datetime | None = None
    """When it ends, with a time zone; none: now."""


class Minutes(msgspec.Struct, forbid_unknown_fields=True):
    """How many minutes are meant."""

    minutes: int = 1
    """Full ones, before the one under way: 0 to 59."""
    limit: Limited = 60
    cursor: str | None = None


async def _list(wanted: Wanted) -> Rows:
    snapshot = await wanted.app.snapshot(max_age="2s", tenants=False)
    return wanted.page(snapshot.queues, lambda one: one.queue, "queues")


async def _show(wanted: Wanted) -> Overview:
    return await wanted.queue.overview()


async def _statistics(wanted: Wanted) -> QueueStatistics:
    return await wanted.queue.statistics(wanted.given.window, until=wanted.given.until)


async def _series(wanted: Wanted) -> Series:
    given = wanted.given
    return await wanted.queue.series(given.window, step=given.step, until=given.until)


async def _settings(wanted: Wanted) -> Settings:
    return await wanted.queue.settings()


async def _shares(wanted: Wanted) -> Rows:
    found = await wanted.queue.shares(minutes=wanted.given.minutes)
    return wanted.page(found, lambda one: f"{one.at:020}", "minutes")


async def _shards(wanted: Wanted) -> ShardsView:
    return await wanted.queue.shards()


def _of_queue(name: str, text: str, answers: Any, read: Any, **more: Any) -> Reading:
    path = f"/queues/{{queue}}/{name}"
    return Reading(name=f"queues.{name}", path=path, text=text, answers=answers, read=read, **more)


SETTINGS: Final = _of_queue(
    "settings",
    "The settings in force, and which of them were changed at run time; its ETag guards changes.",
    Settings,
    _settings,
)

READINGS: Final = (
    Reading(
        name="queues.list",
        path="/queues",
        text="All queues, by name: jobs by state, holds, workers.",
        answers=Many(QueueSnapshot),
        read=_list,
        arguments=Paged,
    ),
    Reading(
        name="queues.show",
        path="/queues/{queue}",
        text="One queue: jobs by state, holds, settings as they are stored, workers.",
        answers=Overview,
        read=_show,
    ),
    _of_queue(
        "statistics",
        "What happened to its jobs in a window, and how long they waited and ran.",
        QueueStatistics,
        _statistics,
        arguments=Window,
    ),
    _of_queue("series", "The same, step by step.", Series, _series, arguments=Steps),
    SETTINGS,
    _of_queue(
        "shares",
        "The share of each tenant, minute by minute.",
        Many(Shares),
        _shares,
        arguments=Minutes,
    ),
    _of_queue("shards", "Its shards, and what is moving.", ShardsView, _shards),
)
