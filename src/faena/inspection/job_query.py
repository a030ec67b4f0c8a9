"""What a search looks for: terms that must all hold of a job, as a text and as a filter.

    state:dead task:send_* tenant:acme error:"timed out" within:24h payload.invoice.number:B-0003

A word without a name is part of the id, the task, the tenant, the queue or the last error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from faena.engine.calls.search import Sieve
from faena.errors import ConfigError, nearest, shown
from faena.job import JobView
from faena.states import State
from faena.values.duration import to_us

LONGEST: Final = 500
_MOST_TERMS: Final = 12
_MOST_STARS: Final = 3
_TERM: Final = re.compile(r'(?:([A-Za-z_][\w.-]*):)?("[^"]*"|\S+)')
_SAFE: Final = re.compile(r"[\w .:@+-]+", re.ASCII)
"""Texts that JSON has as they are, so that the server can look for them."""
_NAMES: Final = (
    *("id", "queue", "task", "tenant", "state", "error"),
    *("within", "since", "until", "is"),
)
_DEEPEST: Final = 8


class Term(msgspec.Struct, frozen=True):
    """One term of a query."""

    name: str
    """Empty for a word without a name; `payload.…` for a field of the payload."""
    value: str

    def __str__(self) -> str:
        needs_quotes = not self.value or any(one.isspace() for one in self.value)
        value = f'"{self.value}"' if needs_quotes else self.value
        return f"{self.name}:{value}" if self.name else value


class JobQuery(msgspec.Struct, frozen=True):
    """Terms that must all hold; of several queues or states, one."""

    terms: tuple[Term, ...] = ()
    since: int | None = None
    """Ended since then, or enqueued since then and not ended; microseconds."""
    until: int | None = None
    """The same: before then."""
    tenant: str | None = None
    """The only tenant whose jobs may be found, whatever the terms say."""

    @classmethod
    def parse(cls, text: str, now: int) -> JobQuery:
        """Read a query; `now`, in microseconds, is what times such as `within:1h` count from."""
        if len(text) > LONGEST or not text.isprintable():
            raise _wrong(f"must be printable and have at most {LONGEST} characters", text[:50])
        terms = tuple(_read(text))
        if len(terms) > _MOST_TERMS:
            raise _wrong(f"must have at most {_MOST_TERMS} terms", str(len(terms)))
        since = [one for term in terms if (one := _since(term, now)) is not None]
        until = [_at(term) for term in terms if term.name == "until"]
        return cls(terms, max(since, default=None), min(until, default=None))

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))

    def values(self, name: str) -> list[str]:
        """The values of all terms of a name."""
        return [term.value for term in self.terms if term.name == name]

    def only(self, value: str, name: str) -> JobQuery:
        """The same with one more term."""
        return msgspec.structs.replace(self, terms=(*self.terms, Term(name, value)))

    def without(self, *names: str) -> JobQuery:
        """The same without the terms of some names."""
        kept = tuple(term for term in self.terms if term.name not in names)
        return msgspec.structs.replace(self, terms=kept)

    @property
    def is_past(self) -> bool:
        """Whether it is about the history, and not about the broker's jobs."""
        return "past" in self.values("is")

    @property
    def payload_fields(self) -> list[str]:
        """The fields of payloads that it compares."""
        return [term.name[8:] for term in self.terms if term.name.startswith("payload.")]

    def states(self, among: frozenset[State] = frozenset(State)) -> frozenset[State]:
        """The states that jobs may be in."""
        named = frozenset(State(one) for one in self.values("state"))
        return (named & among) if named else among

    def asks_for(self, queue: str) -> bool:
        """Whether jobs of a queue can fit."""
        named = self.values("queue")
        return not named or any(_like(one, queue) for one in named)

    def sieve(self, queue: str) -> Sieve:
        """What the server can compare; whatever fits passes it."""
        words = [one for one in self.values("") if one.lower() not in queue.lower()]
        word, error = _first_safe(words), _first_safe(self.values("error"))
        named = (term for term in self.terms if term.name in _BY_NEEDLE or "." in term.name)
        needles = [*(_longest_part(term.value) for term in named), self.tenant or ""]
        return Sieve(
            prefix=next((one.split("*")[0] for one in self.values("id")), ""),
            word=word,
            error=error,
            needles=tuple(one for one in needles if one and _SAFE.fullmatch(one)),
            since=self.since,
            until=self.until,
        )

    def fits(self, job: JobView) -> bool:
        """Whether all terms hold of a job."""
        return (
            job.state in self.states()
            and self.tenant in {None, job.tenant}
            and self.asks_for(job.queue)
            and _is_within(job, self.since, self.until)
            and all(_holds(term, job) for term in self.terms)
        )


_BY_NEEDLE: Final = frozenset({"task", "tenant"})


def _read(text: str) -> Iterator[Term]:
    for found in _TERM.finditer(text):
        name, value = found[1] or "", found[2]
        value = value[1:-1] if value.startswith('"') and value.endswith('"') else value
        is_payload = name.startswith("payload.") and len(name) > len("payload.")
        if name and name not in _NAMES and not is_payload:
            raise ConfigError(
                f"a term of the search must have a known name, got {shown(name)}; "
                f"{nearest(name, [*_NAMES, 'payload.FIELD'])}",
                field="q",
                value=text,
            )
        if value.count("*") > _MOST_STARS:
            raise _wrong(f"must have at most {_MOST_STARS} stars in a term", value)
        if name == "state" and value not in set(State):
            raise _wrong(f"must name a state ({', '.join(State)})", value)
        if name == "is" and value != "past":
            raise _wrong("must have is:past, or nothing of that name", value)
        if value:
            yield Term(name, value)


def _wrong(what: str, value: str) -> ConfigError:
    return ConfigError(f"a search {what}, got {shown(value)}", field="q", value=value)


def _since(term: Term, now: int) -> int | None:
    if term.name == "within":
        return now - to_us("within", term.value, least_us=1)
    return _at(term) if term.name == "since" else None


def _at(term: Term) -> int:
    try:
        at = datetime.fromisoformat(term.value)
    except ValueError:
        raise _wrong(
            f"must have an instant such as 2026-11-17T03:00 in {term.name}", term.value
        ) from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def _first_safe(values: list[str]) -> str:
    return next((one.lower() for one in values if _SAFE.fullmatch(one)), "")


def _longest_part(pattern: str) -> str:
    return max(pattern.split("*"), key=len)


def _like(pattern: str, text: str) -> bool:
    """Whether a text is the pattern, in which `*` stands for anything."""
    first, *others = pattern.split("*")
    if not others:
        return pattern == text
    at, last = len(first), others.pop()
    if not text.startswith(first):
        return False
    for part in others:
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return len(text) - len(last) >= at and text.endswith(last)


def _has(part: str, text: str | None) -> bool:
    return text is not None and part.lower() in text.lower()


def _has_error(part: str, job: JobView) -> bool:
    last = job.errors[-1] if job.errors else None
    return last is not None and any(_has(part, one) for one in (last.name, last.code, last.message))


def _is_within(job: JobView, since: int | None, until: int | None) -> bool:
    at = job.finished_at or job.enqueued_at or job.created_at or 0
    return (since is None or at >= since) and (until is None or at < until)


def _is_word_of(part: str, job: JobView) -> bool:
    return any(_has(part, one) for one in (job.id, job.task, job.tenant, job.queue)) or _has_error(
        part, job
    )


_COMPARED: Final[Mapping[str, Callable[[str, JobView], bool]]] = {
    "": _is_word_of,
    "id": lambda value, job: _like(value, job.id),
    "task": lambda value, job: _like(value, job.task),
    "tenant": lambda value, job: job.tenant is not None and _like(value, job.tenant),
    "error": _has_error,
}


def _holds(term: Term, job: JobView) -> bool:
    if term.name.startswith("payload."):
        return _has_field(job, term.name[8:].split("."), term.value)
    compared = _COMPARED.get(term.name)
    return compared is None or compared(term.value, job)


def _has_field(job: JobView, path: list[str], value: str) -> bool:
    try:
        payload = msgspec.json.decode(job.payload)
    except msgspec.DecodeError:
        return False
    return any(_like(value, one) for one in _scalars(payload, path))


def _scalars(value: Any, path: list[str], depth: int = 0) -> Iterator[str]:
    """What a field holds, as text; of a list, what any of its items holds."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for one in value:
            yield from _scalars(one, path, depth + 1)
    elif path and isinstance(value, Mapping):
        if path[0] in value:
            yield from _scalars(value[path[0]], path[1:], depth + 1)
    elif not path and not isinstance(value, Mapping):
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()
