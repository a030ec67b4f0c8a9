"""What a program says about the retrieval of its archives."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from faena.errors import ConfigError
from faena.options.fields import derive
from faena.pg.archive.store import Bucket, read_place
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields
from faena.values.names import check_name

SECRET: Final = "FAENA_ARCHIVE_SECRET"  # noqa: S105 - the name of the variable
"""The secrets that sign links if the program gives none: several are separated by commas."""

_SHORTEST: Final = 32
_MINUTE_US: Final = 60_000_000
_DAY_US: Final = 86_400_000_000


@known_fields("retrieval")
@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """How tenants get their archived rows."""

    secrets: str | Sequence[str] | None = field(default=None, repr=False)
    """What signs links, of at least 32 characters each: the first signs, all are accepted. None:
    FAENA_ARCHIVE_SECRET."""

    lifetime: Duration = "1h"
    """How long a link works: 1m to 7d."""

    keep: Duration = "1d"
    """How long a file is kept for the same request: 1m to 30d; no link to it works longer."""

    to: str | Path | Bucket | None = None
    """Where files are written: a directory, `s3://bucket/prefix` or a Bucket. None:
    FAENA_ARCHIVE_URL, else `archives` in the app's directory."""

    queue: str = "archives"
    """The queue of its jobs; created if the app has none of this name."""

    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)
    """Seconds since 1970, for links and files that expire."""

    lifetime_us: int = field(init=False, repr=False, compare=False)
    keep_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.secrets is not None:
            check_secrets(self.secrets, "secrets")
        check_name("queue", self.queue)
        if self.to is not None:
            read_place(self.to)
        lifetime = to_us("lifetime", self.lifetime, least_us=_MINUTE_US, most_us=7 * _DAY_US)
        derive(self, "lifetime_us", lifetime)
        keep = to_us("keep", self.keep, least_us=_MINUTE_US, most_us=30 * _DAY_US)
        derive(self, "keep_us", keep)

    def signing(self) -> tuple[bytes, ...]:
        """The secrets; the environment is read now, and its absence refused."""
        given = self.secrets if self.secrets is not None else os.environ.get(SECRET)
        if not given:
            raise ConfigError(
                f"secrets must be given, or be in {SECRET}: without one no link can be signed",
                field="secrets",
            )
        return check_secrets(given, "secrets" if self.secrets is not None else SECRET)


def check_secrets(given: Any, what: str) -> tuple[bytes, ...]:
    """Secrets as bytes; errors show none of them."""
    listed: list[Any] = given.split(",") if isinstance(given, str) else list(given)
    found = [one.strip() if isinstance(one, str) else "" for one in listed]
    if not found or any(len(one) < _SHORTEST for one in found):
        raise ConfigError(
            f"{what} must have at least {_SHORTEST} characters each: make one with "
            f"`python -c 'import secrets; print(secrets.token_urlsafe(32))'`",
            field=what,
        )
    return tuple(one.encode() for one in found)
