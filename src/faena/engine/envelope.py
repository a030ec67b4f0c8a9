"""A spec on the broker: one line for the scripts, then the producer's JSON, which never changes.

    010\\n{"task":"noop","payload":{}}
    005 delay=300000000 unique=9f2c mode=live digest=77ab\\n{…}

The line begins with the priority in three digits. Facts follow if the job has any.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypedDict

import msgspec

from faena.job import Spec


class LaneFacts(TypedDict, total=False):
    """The lane, order and cost of a job; an ordinary job has none."""

    lane: str
    """The lane of its tenant."""
    chain: str
    """The chain whose order it keeps."""
    key: str
    """Its key, if the queue has limits by key."""
    cost: str
    """Its estimated cost, for limits by cost."""


class Facts(LaneFacts, total=False):
    """The facts of the line after the priority; an ordinary job has none."""

    delay: int
    """Microseconds until it is ready."""
    at: int
    """The instant when it is ready, instead of a delay."""
    expires: int
    """The instant after which no attempt starts."""
    lasts: int
    """Microseconds until then, instead of an instant."""
    digest: str
    """The digest in which jobs with the same id must agree."""
    unique: str
    """The hash of its unique key."""
    mode: str
    """The mode of the unique key."""
    ttl: int
    """Microseconds for which a throttle holds its key."""
    tells: str
    """The flow or group that is notified of its end."""
    by: int
    """The instant after which it is no longer accepted."""


NO_FACTS: Final = Facts()

read_spec: Final = msgspec.json.Decoder(Spec).decode


class NewJob(NamedTuple):
    """A job that is ready to be sent, with the facts of its spec."""

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
    """The facts in the line of a sealed spec."""
    facts = spec[: spec.index(b"\n")].decode().split(" ")[1:]
    return {name: value for name, _, value in (fact.partition("=") for fact in facts)}


def body_of(spec: bytes) -> bytes:
    """The producer's bytes."""
    return spec[4:] if spec[3] == 10 else spec[spec.index(b"\n") + 1 :]


def spec_in(sealed: bytes | None) -> Spec | None:
    """The producer's spec; None if it cannot be read, such as from another kind of program."""
    try:
        return read_spec(opened(sealed or b"")[2])
    except (msgspec.MsgspecError, ValueError, IndexError, RecursionError):
        return None


def has_own_id(sealed: bytes) -> bool:
    """Whether its producer gave the id: only then does the line have a digest."""
    line, end, _ = sealed.partition(b"\n")
    return bool(end) and b" digest=" in line
