"""Script stubs without I/O: the arguments of the three hot calls and the meaning of answers.

The arguments of these calls are ordered here, as in the scripts' headers; other calls name theirs.
Every function here is pure. `Engine` sends; tests can read and write these shapes without a server.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.envelope import NewJob
from faena.engine.wire.wire import Argument
from faena.errors import InternalError, ShardsChanged
from faena.outcomes import (
    Buried,
    Cancelled,
    Completed,
    Expired,
    Limited,
    Outcome,
    Released,
    Retried,
    Snoozed,
)

UNCONFIGURED = b"UNCONFIGURED"
OVERTAKEN = b"OVERTAKEN"
MOVED = b"MOVED"
_REFUSALS: Final = frozenset({UNCONFIGURED, OVERTAKEN, MOVED})

_Known = tuple[int, int, int, str, int, int, int]
"""The history of a marked job, in the order of a claim's fields."""

_NO_HISTORY: Final[Mapping[bytes, _Known]] = {}

_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()


class Settlement(NamedTuple):
    """The end of one lease."""

    id: str
    lease: str
    outcome: Outcome


class Turn(NamedTuple):
    """One exchange: what to settle and how much to claim."""

    call: str
    want: int
    settled: Sequence[Settlement] = ()
    samples: Mapping[str, Any] | None = None
    """What the worker has measured of its jobs, as minutes.lua reads it."""
    is_sweep: bool = False
    least_lease_us: int = 0
    """The least length of this call's leases, whatever the queue's settings are."""
    next_sweep_us: int = 0
    """With a sweep, the time until the next one; the worker stays listed at least twice as long."""
    about: str = ""
    """With a sweep, the worker's description: pid, version, library and host."""
    asked_at: float = math.inf
    """When this process first sent the call, by its own clock: no claim is older. Not sent."""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A job leased to this worker."""

    id: str
    lease: str
    spec: bytes | None
    score: float
    attempts: int = 0
    losses: int = 0
    priority: int = 0
    """The changed priority; 0: as enqueued."""
    origin: str = ""
    """The first job in its line of retries as new; empty: this job."""
    expires_at: int = 0
    """The instant after which it must not start; 0: none."""
    snoozes: int = 0
    """How often its handler has snoozed it."""
    enqueued_at: int = 0
    """When it was enqueued; 0: its score tells."""


class Loss(NamedTuple):
    """A job that the server buried as poison, after too many lost deliveries."""

    id: str
    task: str
    tenant: str
    number: int


class Late(NamedTuple):
    """A job that had expired at its turn: it was cancelled, not claimed."""

    id: str
    attempts: int


class Exchanged(NamedTuple):
    """The answer to an exchange; instants are the server's microseconds."""

    now: int
    """When this answer was made; times until something are counted from here."""
    next_at: int
    gate: str
    more: bool
    has_outbox: bool
    """Whether messages or pending sends wait to be relayed."""
    lost: list[str]
    claimed: list[Claim]
    claimed_at: int
    """When the leases began; before `now` if this answer repeats a lost one."""
    buried: Sequence[Loss] = ()
    """Jobs that this call buried because their last delivery was lost."""
    expired: Sequence[Late] = ()
    """Jobs that this call found expired."""


class Look(NamedTuple):
    """Everything stored about one job."""

    state: str
    score: str
    spec: bytes
    mark: bytes
    """Packed; empty, like the fields below, if there is none."""
    lease: bytes
    """The record of its lease."""
    result: bytes
    info: Mapping[str, bytes]
    """Its errors, log lines and progress."""
    enqueued_at: int | None
    """When it was enqueued, if known."""


class Answer(NamedTuple):
    """The answer to the enqueue of one job."""

    code: str = "CREATED"
    detail: str | int = ""
    extra: str | int = ""
    replaced: str | None = None


CREATED = Answer()


def enqueue_args(
    caller: str, call: str, epoch: int, jobs: Sequence[NewJob | tuple[str, bytes]]
) -> list[Argument]:
    """Ids and specs, after the caller."""
    args: list[Argument] = [caller, call, epoch or ""]
    for job in jobs:
        args += job[:2]
    return args


def exchange_args(caller: str, worker: str, turn: Turn) -> list[Argument]:
    """Completions are sent as pairs, with the result if any; other outcomes with their details."""
    plain: list[Argument] = []
    kept: list[Argument] = []
    others: list[Argument] = []
    for job, lease, outcome in turn.settled:
        if type(outcome) is not Completed:
            others += (job, lease, outcome.kind, *_told(outcome))
        elif outcome.result:
            kept += (job, lease, outcome.result)
        else:
            plain += (job, lease)
    samples = _msgpack.encode(turn.samples) if turn.samples else b""
    sweep = f"{turn.next_sweep_us} {turn.about}".rstrip() if turn.is_sweep else ""
    head = (caller, turn.call, worker, turn.want, sweep, samples, turn.least_lease_us)
    return [*head, len(plain) // 2, len(kept) // 3, *plain, *kept, *others]


def renew_args(least_lease_us: int, leases: Iterable[tuple[str, str]]) -> list[Argument]:
    """Ids and leases, after the least length."""
    return [least_lease_us, *(text for pair in leases for text in pair)]


def _told(outcome: Outcome) -> tuple[int, bytes, bytes]:  # noqa: PLR0911 - one for each outcome
    """The outcome's number, its details, and the note for the dead-letter desk."""
    match outcome:
        case Retried(delay_us=delay_us, error=error):
            return delay_us, _json.encode(error), b""
        case Buried(error=error, has_run=has_run, note=note):
            return int(has_run), _json.encode(error), _msgpack.encode(note) if note else b""
        case Cancelled(error=error) | Expired(error=error):
            return 0, _json.encode(error), b""
        case Snoozed(delay_us=delay_us, reason=reason, is_parked=is_parked):
            sign = "?" if is_parked else "+"
            return delay_us, b"" if reason is None else f"{sign}{reason}".encode(), b""
        case Limited(delay_us=delay_us, reason=reason):
            return delay_us, reason.encode(), b""
        case Released(priority=priority):
            return priority, b"", b""
        case _:
            return 0, b"", b""


def read_exchange(reply: Sequence[Any], lease: str) -> Exchanged:
    """Pair ids, scores and specs; only marked jobs have more fields."""
    now, next_at, gate, more, lost, popped, specs, facts = reply[:8]
    history = _history(facts) if facts else _NO_HISTORY
    claimed: list[Claim] = []
    for job, score, spec in zip(popped[::2], popped[1::2], specs, strict=True):
        if job in history:
            claimed.append(Claim(job.decode(), lease, spec, float(score), *history[job]))
        else:
            claimed.append(Claim(job.decode(), lease, spec, float(score)))
    exchanged = Exchanged(
        now, next_at, gate.decode(), bool(more & 1), bool(more & 2), texts(lost), claimed, now
    )
    return _with_news(exchanged, *reply[8:]) if len(reply) > 8 else exchanged


def _history(facts: Sequence[Any]) -> dict[bytes, _Known]:
    return {
        facts[i]: (*facts[i + 1 : i + 4], facts[i + 4].decode(), *facts[i + 5 : i + 8])
        for i in range(0, len(facts), 8)
    }


def _with_news(
    exchanged: Exchanged, losses: Sequence[Any], late: Sequence[Any] = (), claimed_at: int = 0
) -> Exchanged:
    return exchanged._replace(
        buried=tuple(_loss(*flat) for flat in losses),
        expired=tuple(Late(job.decode(), attempts) for job, attempts in late),
        claimed_at=claimed_at or exchanged.now,
    )


def _loss(job: bytes, task: bytes, tenant: bytes, number: int) -> Loss:
    """The spec was not checked, so task and tenant may be any bytes."""
    name, whose = (word.decode("utf-8", "replace") for word in (task, tenant))
    return Loss(job.decode(), name, whose, number)


def read_enqueue(reply: Sequence[Any], number: int) -> list[Answer]:
    """Read the answers; jobs that the script does not mention were created."""
    answers = [CREATED] * number
    if len(reply) == 1:
        return answers
    for i in range(1, len(reply), 4):
        index, code, first, second = reply[i : i + 4]
        text, detail, extra = code.decode(), _plain(first), _plain(second)
        known = answers[index - 1]
        if text == "REPLACED":
            answers[index - 1] = known._replace(replaced=str(detail))
        else:
            answers[index - 1] = Answer(text, detail, extra, known.replaced)
    return answers


def _plain(value: bytes | int) -> str | int:
    return value.decode() if isinstance(value, bytes) else value


def once(name: str) -> dict[str, str]:
    """Caller and call id of a request that is only resent until it is answered."""
    return {"caller": secrets.token_hex(8), "id_of_call": name}


def is_refused(reply: Any) -> bool:
    """Whether a script refused the call as a whole; `is_unconfigured` tells why."""
    return isinstance(reply, list) and bool(reply) and reply[0] in _REFUSALS


def is_unconfigured(reply: Any) -> bool:
    """Whether the server has no settings of the queue; raises if another call overtook this one."""
    first = reply[0] if isinstance(reply, list) and reply else reply
    if first == MOVED:
        raise ShardsChanged("the shards of the queue have changed", op="enqueue")
    if first == OVERTAKEN:
        raise InternalError("the calls of a caller must be made one at a time, under growing ids")
    return bool(first == UNCONFIGURED)


def read_look(row: Sequence[Any]) -> Look | None:
    """None for an unknown job."""
    if not row:
        return None
    state, score, spec, mark, lease, result, info, since = row
    at = int(since) if since else None
    return Look(state.decode(), score.decode(), spec, mark, lease, result, pairs(info), at)


def texts(values: Iterable[bytes]) -> list[str]:
    """Decode a list of ids or words."""
    return [value.decode() for value in values]


def pairs(flat: Sequence[Any]) -> dict[str, Any]:
    """A flat name, value, name, value reply as a dict."""
    return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}


def text_pairs(flat: Sequence[bytes]) -> dict[str, str]:
    """The same with strings as values."""
    return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}
