"""The reasons of a job, out of the gates before it or out of its history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from faena.engine.calls.upstreams import UpstreamView
from faena.inspection.ended import Past
from faena.inspection.gate import Gate
from faena.inspection.instant import instant
from faena.inspection.reason import Detail, Reason
from faena.states import State

if TYPE_CHECKING:
    from faena.inspection.explanation import Explanation

_NO_HANDLER: Final = "no worker here knows"
"""How the reason of parking begins; see worker/execute/parking.py."""
_LIMITS: Final = frozenset({"limit", "tenant_limit", "key_limit"})


def of_waiting(told: Explanation) -> Iterator[Reason]:
    """Why it waits; "next" where nothing keeps it."""
    reasons = [_of_gate(told, gate) for gate in told.gates]
    if told.ahead:
        come = "job comes" if told.ahead == 1 else "jobs come"
        details: dict[str, Detail] = {"ahead": told.ahead, "lane_ahead": told.lane_ahead}
        reasons.append(Reason(code="line", words=f"{told.ahead} {come} first", details=details))
    yield from reasons
    if not reasons and not told.beside:
        yield Reason(code="next", words="it is next")
    if told.expires_at is not None:
        yield Reason(code="expires", words="it has not expired", until=told.expires_at)


def _of_gate(told: Explanation, gate: Gate) -> Reason:
    details: dict[str, Detail] = {"queue": told.queue, "gate": gate.name, "detail": gate.detail}
    code = gate.name
    upstream = gate.upstream_name()
    view = next((one for one in told.upstreams if one.name == upstream), None)
    if upstream and (view is not None or gate.name == "parked"):  # else a hold that has such a name
        code, details = _upstream_code(view), details | {"upstream": upstream}
    elif gate.name == "delayed":
        code = told.delayed_by
    elif gate.name == "parked" and gate.detail.startswith(_NO_HANDLER):
        code = "no_handler"
    elif gate.name == "held" and gate.detail == "rate_limited":
        code = "rate_limited"
    elif gate.name == "behind":
        job, _, state = gate.detail.partition(" ")
        code, details = told.behind or "order", details | {"job": job, "state": state}
    elif gate.name in _LIMITS:
        code = gate.name if gate.until is not None else "too_costly"
        details |= {"limit": gate.detail}
    elif gate.name == "turn":
        details |= {"ahead": int(gate.detail)}
    return Reason(code=code, words=_words(told, gate, code), until=gate.until, details=details)


def _words(told: Explanation, gate: Gate, code: str) -> str:
    if code == "retry":
        failed = "" if told.error is None else f" ({told.error})"
        return f"attempt {told.attempts_made or 1} failed{failed}, and the next one waits"
    if code == "too_costly":
        return f"it, or the job before it, costs more than the limit of {gate.detail} allows"
    return gate.words(0 if gate.until is None else gate.until)


def _upstream_code(view: UpstreamView | None) -> str:
    if view is None:
        return "upstream"
    if view.panic is not None:
        return "panic"
    if view.state != "closed":
        return "breaker"
    if view.full_budgets:
        return "budget"
    return "upstream_limit" if any(use.opens_at for use in view.limits) else "upstream"


def of_past(told: Explanation, past: Past) -> Iterator[Reason]:
    """What became of a job that does not wait."""
    state = told.state or State.COMPLETED
    details: dict[str, Detail] = {"queue": told.queue, "worker": past.worker, "since": past.at}
    words = f"it {past.words(state)}"
    if state is State.RUNNING:
        yield from _of_running(told, past, words, details)
    elif state is State.DEAD:
        yield _of_dead(past, words)
    else:
        is_expired = state is State.CANCELLED and past.is_expired
        yield Reason(code="expired" if is_expired else state.value, words=words)


def _of_running(
    told: Explanation, past: Past, words: str, details: dict[str, Detail]
) -> Iterator[Reason]:
    details |= {"lease_until": past.lease_until}
    code = "stopping" if past.is_stopping else "running"
    yield Reason(code=code, words=words, details=details)
    if past.lease_until is not None and past.lease_until <= told.at:
        words = f"its lease has ended at {instant(past.lease_until)}"
        yield Reason(code="lease_over", words=words, details=details)


def _of_dead(past: Past, words: str) -> Reason:
    desk = past.desk
    if desk is None or (desk.status == "pending" and desk.retry_at is None):
        return Reason(code="dead", words=words)
    if desk.status == "pending":
        again = f"{words}; it is retried automatically"
        return Reason(code="dead_retry", words=again, until=desk.retry_at)
    details: dict[str, Detail] = {"job": desk.retried_as, "by": desk.by, "why": desk.reason}
    what = f" as job {desk.retried_as}" if desk.retried_as else ""
    by = f" by {desk.by}" if desk.by else ""
    return Reason(
        code=desk.status, words=f"{words}; it was {desk.status}{what}{by}", details=details
    )
