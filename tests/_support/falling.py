"""Upstreams that are out, and what was told of jobs that fell back."""

from __future__ import annotations

from faena import Faena, Upstream
from faena.outcomes import UpstreamUnavailable
from tests._support.eventually import eventually


class Down(Exception):
    """The stand-in service is down."""


async def trip(upstream: Upstream) -> None:
    """Have its breaker open."""

    @upstream
    async def fail() -> None:
        raise ConnectionResetError("down")

    async def is_open() -> bool:
        try:
            await fail()
        except UpstreamUnavailable as error:
            return error.reason == "open"
        except ConnectionResetError:
            pass
        return False

    await eventually(is_open)


async def events_of(app: Faena, *names: str) -> list[str]:
    """Events so far with these names."""
    engine = (await app.runtime()).engine
    found: list[str] = []
    for queue in app.queues:
        for _, fields in await engine.command("XRANGE", queue, "events", "-", "+"):
            words = [one.decode() for one in fields]
            found += [name for name in words[4::2] if name in names]
    return found
