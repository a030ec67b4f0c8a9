"""A spec on the broker: one line the scripts read, then the producer's JSON, which nobody rewrites.

    010\\n{"task":"noop","payload":{}}
    005 delay=300000000 unique=9f2c mode=live digest=77ab\\n{…}

The line begins with the priority in three digits; facts follow only where a job has any.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypedDict

import msgspec

from faena.job import Spec


class LaneFacts(TypedDict, total=False):
    """Where a job waits and what it costs; an ordinary job has none."""

    lane: str
    """Of its tenant."""
    chain: str
    """Whose order it keeps."""
    key: str
    """Of its tenant, where keys have limits."""
    cost: str
    """What it is estimated at, for limits by cost."""


class Facts(LaneFacts, total=False):
    """What the line says beyond the priority; an ordinary job has none."""

    delay: int
    """Microseconds until it is ready."""
    at: int
    """The instant from which it is ready, in the place of a delay."""
    expires: int
    """The instant from which no attempt is started any more."""
    lasts: int
    """Microseconds until then, in its place."""
    digest: str
    """What makes two jobs of one id the same."""
    unique: str
    """The hash of its unique claim."""
    mode: str
    """Of the claim."""
    ttl: int
    """Microseconds for which a throttle's claim is held."""
    tells: str
    """The flow or group that is told of its end."""
    by: int
    """The instant after which it is not taken in any more."""


NO_FACTS: Final = Facts()

read_spec: Final = msgspec.json.Decoder(Spec).decode


class NewJob(NamedTuple):
    """A job ready to be sent; the facts are those that its spec begins with."""

    id: str
    spec: bytes
    facts: Facts = NO_FACTS


def seal(priority: int, facts: Facts, body: bytes) -> bytes:
    """Put the line before the body."""
    if not facts:
        return b"%03d\n%b" % (priority, body)
    line = " ".join(f"{name}={value}" for name, value in facts.items())
    return f"{priority:03d} {line}\n".encode() + body


def opened(spec: bytes) -> tuple[int, bool, bytes]:
    """The priority, whether the job is chained, and the producer's bytes."""
    if spec[3] == 10:
        return int(spec[:3]), False, spec[4:]
    return priority_of(spec), is_chained(spec), body_of(spec)


def priority_of(spec: bytes) -> int:
    """The priority the job was enqueued with."""
    return int(spec[:3])


def is_chained(spec: bytes) -> bool:
    """Whether the job keeps an order, in which priorities mean nothing."""
    return spec[3] != 10 and b" chain=" in spec[: spec.index(b"\n")]


def facts_in(spec: bytes) -> dict[str, str]:
    """What the line of a job from the server says beyond the priority."""
    facts = spec[: spec.index(b"\n")].decode().split(" ")[1:]
    return {name: value for name, _, value in (fact.partition("=") for fact in facts)}


def body_of(spec: bytes) -> bytes:
    """The producer's bytes."""
    return spec[4:] if spec[3] == 10 else spec[spec.index(b"\n") + 1 :]


def spec_in(sealed: bytes | None) -> Spec | None:
    """What the producer wrote; None where a program of another kind has written something else."""
    try:
        return read_spec(opened(sealed or b"")[2])
    except (msgspec.MsgspecError, ValueError, IndexError):
        return None


def has_own_id(sealed: bytes) -> bool:
    """Whether its producer gave it its id: only then is written down what would be another job."""
    line, end, _ = sealed.partition(b"\n")
    return bool(end) and b" digest=" in line
