"""The call of a search: one look through some states of one shard, from a place on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from faena.engine.engine import Engine

LOOKED: Final = 1_000
"""Jobs that one call looks at, which blocks the server for a millisecond or two."""


class Spot(NamedTuple):
    """Where a search has come to in a shard; the start has no state."""

    state: str = ""
    score: str = ""
    id: str = ""


class Sieve(NamedTuple):
    """What the server can compare cheaply; whatever fits a search passes it."""

    prefix: str = ""
    """How the id begins."""
    word: str = ""
    """Part of the id, of the task or tenant, or of the last error; in small letters."""
    error: str = ""
    """Part of the last error, in small letters."""
    needles: tuple[str, ...] = ()
    """Parts of the spec."""
    since: int | None = None
    until: int | None = None
    """Of jobs that have ended: when. Microseconds."""


class Met(NamedTuple):
    """A job that may fit, in the state and at the place in which it was seen."""

    id: str
    state: str
    score: str


class Looked(NamedTuple):
    """What one call has found."""

    spot: Spot | None
    """Where it has come to; None if nothing is left in this shard."""
    number: int
    """Jobs that were looked at."""
    met: Sequence[Met]


async def search(
    engine: Engine, shard: str, states: Sequence[str], sieve: Sieve, spot: Spot, wanted: int
) -> Looked:
    """Look at the next jobs of a shard."""
    if not spot.state:
        await engine.take_in(shard)
    reply = await engine.ask(
        "search",
        shard,
        *sieve.needles,
        states=",".join(states),
        looked=LOOKED,
        wanted=wanted,
        state=spot.state,
        score=spot.score,
        id=spot.id,
        since=sieve.since,
        until_at=sieve.until,
        prefix=sieve.prefix,
        word=sieve.word,
        error=sieve.error,
    )
    state, score, job, number, flat = reply
    words = [one.decode() for one in flat]
    met = [Met(*words[at : at + 3]) for at in range(0, len(words), 3)]
    reached = Spot(state.decode(), score.decode(), job.decode()) if state else None
    return Looked(reached, number, met)
