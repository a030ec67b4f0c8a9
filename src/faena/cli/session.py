"""Connects an app for one command."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import click

from faena.app import Faena
from faena.engine.wire.patience import within

_CONNECT_S = 2.0
"""Shorter than a program's patience: a user waits for the answer."""

T = TypeVar("T")


@contextmanager
def _one_line(*, is_told: bool) -> Generator[None]:
    """If the broker is shown anyway, drop the log line about the embedded one."""
    log = logging.getLogger("faena")
    if is_told:
        log.addFilter(_is_other)
    try:
        yield
    finally:
        log.removeFilter(_is_other)


def _is_other(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("no FAENA_URL")


@contextmanager
def quiet_pool() -> Generator[None]:
    """Drop what the pool of PostgreSQL's driver logs of each try to connect: the command's own
    error says it once."""
    log = logging.getLogger("psycopg.pool")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def run(app: Faena, work: Callable[[], Awaitable[T]]) -> T:
    """Connect, do the work, disconnect; an unreachable broker is an error within seconds."""

    async def session() -> T:
        try:
            with _one_line(is_told=sys.stderr.isatty()), within(_CONNECT_S):
                await app.connect()
            if sys.stderr.isatty():  # tell people which of their brokers this is
                click.secho(await app.broker(), dim=True, err=True)
            with quiet_pool():
                return await work()
        finally:
            for attached in app.attachments.values():  # its PostgreSQL, where jobs have a history
                if hasattr(attached, "close"):
                    await attached.close()
            await app.close()

    return asyncio.run(session())
