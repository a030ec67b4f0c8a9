"""Checks the arguments of calls to the dead-letter desk, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypedDict

from faena.deadletter.views import Dealt, Status
from faena.engine.calls.deadletter import Decision, Filter
from faena.errors import (
    ConfigError,
    InvalidTransition,
    JobNotFound,
    as_text,
    nearest,
    shown,
    unknown_name,
)
from faena.limits import Limit
from faena.values.duration import Duration, to_us
from faena.values.ids import as_label
from faena.values.names import check_label, check_words, is_utf8

_LONGEST_REASON: Final = 500
_RETRIES: Final = ("retry", "redrive", "auto")
"""Actions that make a new job."""


class DeadFilter(TypedDict, total=False):
    """Which dead jobs to select; a missing value, or None, matches any."""

    status: Status | str | None
    tenant: str | None
    task: str | None
    error: str | None
    """The name of the exception, or its code."""
    fingerprint: str | None
    older_than: Duration | None
    """Dead for longer than this."""
    newer_than: Duration | None
    """Dead for less than this."""


def read_filter(given: Mapping[str, Any]) -> tuple[Filter, tuple[int | None, int | None]]:
    """The filter without its ages, and the ages in microseconds: older than, newer than."""
    words = {name: value for name, value in given.items() if value is not None}
    ages = tuple(_age(name, words.pop(name, None)) for name in ("older_than", "newer_than"))
    _check_ages(given, ages[0], ages[1])
    for name, value in words.items():
        if name not in _WORDS:
            raise unknown_name("filter", name, _NAMES, value=value)
    if "status" in words and (word := as_text(words["status"])) not in set(Status):
        raise ConfigError(
            f"status must be a known one, got {shown(word)}; {nearest(word, list(Status))}",
            field="status",
            value=words["status"],
        )
    checked = {name: _word(name, value) for name, value in words.items()}
    return Filter()._replace(**checked), (ages[0], ages[1])


def _check_ages(given: Mapping[str, Any], older: int | None, newer: int | None) -> None:
    """Refuse ages that no job can have."""
    if older is not None and newer is not None and older >= newer:
        raise ConfigError(
            f"older_than must be less than newer_than ({given['newer_than']}), or no job matches, "
            f"got {given['older_than']}",
            field="older_than",
            value=given["older_than"],
        )


_WORDS: Final = ("status", "task", "tenant", "error", "fingerprint")
_NAMES: Final = (*_WORDS, "older_than", "newer_than")


def _word(name: str, value: Any) -> str:
    return check_words(name, value) if name == "error" else as_label(name, value)


def _age(name: str, value: Any) -> int | None:
    return None if value is None else to_us(name, value)


def bounded(checked: Filter, ages: tuple[int | None, int | None], now: int) -> Filter:
    """A filter with ages as instants."""
    older, newer = ages
    return checked._replace(
        died_to=None if older is None else now - older,
        died_from=None if newer is None else now - newer,
    )


def read_decision(action: str, reason: Any, by: Any) -> Decision:
    """A decision: its action, by whom and why."""
    check_label("by", by)
    if not isinstance(reason, str) or len(reason) > _LONGEST_REASON or not is_utf8(reason):
        raise ConfigError(
            f"reason must be a UTF-8 string of at most {_LONGEST_REASON} characters, "
            f"got {shown(reason)}",
            field="reason",
            value=reason,
        )
    return Decision(action, reason, by)


def read_retry(action: Any, reason: Any, by: Any) -> Decision:
    """The same for a retry, a redrive or an automatic retry."""
    if action not in _RETRIES:
        raise ConfigError(
            f"action must be a known one, got {shown(action)}; {nearest(action, _RETRIES)}",
            field="action",
            value=action,
        )
    return read_decision(action, reason, by)


def read_ids(given: Any) -> list[str]:
    """Job ids without duplicates; a string is refused, because it is not a list of ids."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ConfigError(
            f"job_ids must be a list of ids, got {shown(given)}; write [id] for a single one",
            field="job_ids",
            value=given,
        )
    ids: Iterable[Any] = given
    return list(dict.fromkeys(check_label("id", job) for job in ids))


def read_rate(given: Any) -> Limit | None:
    """The rate of a redrive; None: as fast as possible."""
    if given is None or isinstance(given, Limit):
        return given
    try:
        return Limit(given)
    except ConfigError as error:
        raise ConfigError(
            f"rate must be one or more in a window such as '50/s' or '1000/h', got {shown(given)}",
            field="rate",
            value=given,
        ) from error


def refuse(dealt: Dealt, op: str, queue: str) -> None:
    """Raise if the operation on a single job was refused."""
    job, why, verb = dealt.id, dealt.refused, op.partition("_")[0]
    if why == "unknown":
        raise JobNotFound(
            f"no dead job {job} in queue {queue} (retention may have removed it)", op=op
        )
    if why == "taken":
        raise InvalidTransition(
            f"cannot {verb} dead job {job}: another job has its new id; try again", op=op
        )
    if why in set(Status):
        raise InvalidTransition(f"cannot {verb} dead job {job}: it is already {why}", op=op)
    if why is not None:
        raise InvalidTransition(f"cannot {verb} job {job}: it is {why}, not dead", op=op)
