"""Automatic retries of dead jobs, and alerts about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from faena.errors import ConfigError, shown
from faena.options.fields import derive
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields
from faena.values.numbers import keep_whole

CODES: Final = ("ECONNREFUSED", "ETIMEDOUT", "RATE_LIMIT", "SERVICE_UNAVAILABLE")
"""Transient errors: a provider was down, slow or busy."""

VARIABLE: Final = "ENABLE_DLQ_AUTO_RETRY"

_MANY: Final = 1_000_000_000
_WORDS: Final = {"true": True, "1": True, "yes": True, "on": True} | {
    "false": False, "0": False, "no": False, "off": False,
}  # fmt: skip


@known_fields("dead_letters")
@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """What the dead-letter desk of an app does automatically."""

    auto_retry: bool | None = None
    """Whether workers retry dead jobs whose error is retryable; None means yes. The environment
    variable ENABLE_DLQ_AUTO_RETRY (true, false) overrides it. Jobs that become due while it is off
    are retried when it is on again."""

    codes: tuple[str, ...] = CODES
    """Error codes that are retryable."""

    errors: tuple[type[BaseException], ...] = ()
    """Exception classes that are also retryable, whatever their code; `Discard` never is."""

    retry_after: Duration = "1h"
    """How long after its death a job is retried."""

    most_retries: int = 2
    """The most automatic retries of a job, including those of the jobs that it was retried as."""

    alert_new: int | None = 10
    """More deaths than this in an hour, in all queues, cause a `dead_surge` event; None: never."""

    alert_age: Duration | None = "24h"
    """A job that is pending for longer causes a `dead_old` event; None: never."""

    alert_waiting: int | None = 100
    """More pending jobs than this, in all queues, cause a `dead_many` event; None: never."""

    retry_after_us: int = field(init=False, repr=False, compare=False)
    alert_age_us: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_flag(self.auto_retry)
        _check_all("codes", self.codes, str)
        _check_classes(self.errors)
        keep_whole(self, "most_retries", least=0, most=1000)
        for name in ("alert_new", "alert_waiting"):
            if getattr(self, name) is not None:
                keep_whole(self, name, least=0, most=_MANY)
        derive(self, "codes", tuple(self.codes))
        derive(self, "errors", tuple(self.errors))
        derive(self, "retry_after_us", to_us("retry_after", self.retry_after, least_us=1_000))
        age = self.alert_age
        derive(self, "alert_age_us", None if age is None else to_us("alert_age", age, least_us=1))

    def retries(self, code: str | None, error: BaseException | None) -> bool:
        """Whether a job that died of this error may be retried automatically.

        `auto_retry` is checked later, when the job is due.
        """
        is_retryable = code in self.codes or isinstance(error, self.errors)
        return is_retryable and self.most_retries > 0

    def settled(self, environ: Mapping[str, str]) -> Self:
        """With `auto_retry` resolved: from the environment if set there, else from the program."""
        word = environ.get(VARIABLE, "").strip().lower()
        if not word:
            return replace(self, auto_retry=self.auto_retry is not False)
        if word not in _WORDS:
            raise ConfigError(
                f"{VARIABLE} must be true or false, got {shown(word)}", field=VARIABLE, value=word
            )
        return replace(self, auto_retry=_WORDS[word])


def _check_flag(value: object) -> None:
    if value is not None and not isinstance(value, bool):
        raise ConfigError(
            f"auto_retry must be True, False or None, got {shown(value)}",
            field="auto_retry",
            value=value,
        )


def _check_all(name: str, values: object, kind: type) -> None:
    is_list = isinstance(values, list | tuple)
    if not is_list or not all(isinstance(one, kind) for one in values):
        raise ConfigError(
            f"{name} must be a tuple of {kind.__name__}, got {shown(values)}",
            field=name,
            value=values,
        )


def _check_classes(values: object) -> None:
    _check_all("errors", values, type)
    for one in values:  # pyright: ignore[reportGeneralTypeIssues] - a list or a tuple, as checked
        if not issubclass(one, BaseException):
            raise ConfigError(
                f"errors must be exception classes, got {shown(one)}", field="errors", value=one
            )
