"""The options of one enqueue call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from faena.duration import Duration
from faena.errors import ConfigError
from faena.naming import check_label
from faena.options.durability import Durability
from faena.options.fields import attempt_us, derive, optional_us
from faena.options.priority import priority_of
from faena.options.unique import Unique

_MEMORY: Final = Durability()
_MOST_HEADERS: Final = 64
_LONGEST_HEADER: Final = 4_096
_TELLS: Final = re.compile(r"[fg]:[^:\s]+:[^:\s]+:[^:\s]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueOptions:
    """What one enqueue call says about its job."""

    tenant: str | None = None
    """The organisation the job belongs to; None is the queue's common tenant."""

    key: str | None = None
    """A finer ordering key inside the tenant."""

    delay: Duration | None = None
    """How long the job waits before it is ready; None and "0s" are at once."""

    priority: int | None = None
    """1 (soonest) to 100, or a level's name; None asks the task, then the queue."""

    id: str | None = None
    """The job's id; None makes one. The same id with the same payload is the same job."""

    unique: Unique | str | None = None
    """What counts as a duplicate; a plain text is a key unique while its job lives."""

    durability: Durability | str = _MEMORY
    """What must be safe before the call returns: "memory", "replicated(n)" or "fsynced"."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    """Texts that travel beside the payload: at most 64, each at most 4096 characters."""

    timeout: Duration | None = None
    """How long one attempt may run; None asks the task, then the queue, then the priority."""

    tells: str | None = field(init=False, default=None)
    """The flow or group that is told of the job's end; only `telling` sets it."""

    delay_us: int = field(init=False, repr=False, compare=False)
    timeout_us: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("tenant", self.tenant), ("key", self.key), ("id", self.id)):
            if value is not None:
                check_label(name, value)
        if self.priority is not None:
            derive(self, "priority", priority_of(self.priority))
        if self.unique is not None:
            derive(self, "unique", Unique.of(self.unique))
        if self.durability is not _MEMORY:
            derive(self, "durability", Durability.of(self.durability))
        derive(self, "headers", _headers(self.headers))
        derive(self, "delay_us", optional_us("delay", self.delay) or 0)
        derive(self, "timeout_us", attempt_us(self.timeout))


def telling(options: EnqueueOptions, tells: str) -> EnqueueOptions:
    """The same options, of a job whose end a flow or a group is told of."""
    told = replace(options)
    derive(told, "tells", check_tells(tells))
    return told


def check_tells(tells: str) -> str:
    """Return what names a flow's node or a group, `kind:queue:id:name`; the name may be empty."""
    if not _TELLS.fullmatch(tells):
        raise ConfigError(
            f"id of a flow or a group must be 'id' or 'queue/id', got {tells!r}",
            field="id",
            value=tells,
        )
    return tells


def _headers(given: Any) -> dict[str, str]:
    if given == {}:
        return {}
    if not isinstance(given, Mapping) or len(given) > _MOST_HEADERS:
        raise ConfigError(
            f"headers must be a mapping of at most {_MOST_HEADERS} texts, "
            f"got {type(given).__name__}",
            field="headers",
        )
    for name, text in given.items():
        check_label("header name", name)
        if not _is_header(text):  # its text may be a secret, so the error does not repeat it
            raise ConfigError(
                f"header {name} must be a text of at most {_LONGEST_HEADER} characters of UTF-8, "
                f"got {type(text).__name__}",
                field=name,
            )
    return dict(given)


def _is_header(text: Any) -> bool:
    if not isinstance(text, str) or len(text) > _LONGEST_HEADER:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
