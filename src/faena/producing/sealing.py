"""Writes a new job: the line of facts that scripts read, then its spec."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from faena.engine.envelope import Facts, LaneFacts, NewJob, seal
from faena.job import Spec
from faena.options import EnqueueOptions, Unique, UniqueMode

_MODES: Final = {
    UniqueMode.WHILE_WAITING: "waiting",
    UniqueMode.WHILE_LIVE: "live",
    UniqueMode.THROTTLE: "throttle",
    UniqueMode.DEBOUNCE: "debounce",
    UniqueMode.KEEP_LAST: "last",
}

_NO_LANE: Final = LaneFacts()

_encode = msgspec.json.Encoder().encode


def seal_job(
    job_id: str,
    spec: Spec,
    options: EnqueueOptions,
    priority: int,
    lane_facts: LaneFacts = _NO_LANE,
) -> NewJob:
    """Write the spec and the line before it; `lane_facts` has its lane and chain."""
    facts = _facts(spec, options, lane_facts)
    return NewJob(job_id, seal(priority, facts, _encode(spec)), facts)


class Frame:
    """A template for jobs with the same options: a sealed spec with a gap for the payload."""

    __slots__ = ("_body", "_facts", "_head", "_priority", "_spec", "_tail")

    def __init__(
        self, spec: Spec, options: EnqueueOptions, priority: int, lane_facts: LaneFacts
    ) -> None:
        self._spec, self._priority = spec, priority
        self._facts = _facts(spec, options, lane_facts)
        body = _encode(msgspec.structs.replace(spec, payload=msgspec.Raw(b"0")))
        # Search in the body only: there, a name that looks like the gap has its quotes escaped.
        head, _, self._tail = body.partition(b'"payload":0')
        self._body = head + b'"payload":'
        self._head = seal(priority, self._facts, self._body)

    def fill(self, job_id: str, payload: bytes) -> NewJob:
        """The job with this payload."""
        return NewJob(job_id, self._head + payload + self._tail, self._facts)

    def fill_given(self, job_id: str, payload: bytes) -> NewJob:
        """The same for an id that its producer gave: then the line depends on the payload."""
        spec = self._spec
        digest = _digest(spec.task, payload, spec.tenant, spec.key)
        facts: Facts = {**self._facts, "digest": digest}
        return NewJob(job_id, seal(self._priority, facts, self._body) + payload + self._tail, facts)


def _facts(spec: Spec, options: EnqueueOptions, lane_facts: LaneFacts) -> Facts:
    facts: Facts = {**lane_facts, **time_facts(options)}
    if options.id is not None:
        facts["digest"] = digest_of(spec)
    if options.claim is not None:
        facts.update(_unique_facts(options.claim))
    if options.tells is not None:
        facts["tells"] = options.tells
    if options.sent_by_us:
        facts["by"] = options.sent_by_us
    return facts


def digest_of(spec: Spec) -> str:
    """A digest of task, payload, tenant and key: jobs with one id must agree in it."""
    return _digest(spec.task, bytes(spec.payload), spec.tenant, spec.key)


def _digest(task: str, payload: bytes, tenant: str | None, key: str | None) -> str:
    parts = (task, payload, tenant, key)
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def time_facts(options: EnqueueOptions) -> Facts:
    """When the job is ready and when it expires, for the server's clock."""
    facts: Facts = {}
    if options.at_us:
        facts["at"] = options.at_us
    elif options.delay_us:
        facts["delay"] = options.delay_us
    if options.expires_us:
        facts["expires"] = options.expires_us
    elif options.lasts_us:
        facts["lasts"] = options.lasts_us
    return facts


def _unique_facts(unique: Unique) -> Facts:
    digest = hashlib.blake2b(unique.key.encode(), digest_size=12).hexdigest()
    facts: Facts = {"unique": digest, "mode": _MODES[unique.mode]}
    if unique.ttl_us:
        facts["ttl"] = unique.ttl_us
    if unique.delay_us:
        facts["delay"] = unique.delay_us
    return facts
