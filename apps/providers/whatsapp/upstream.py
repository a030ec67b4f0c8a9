"""WhatsApp as an upstream: 80 messages a second in all, 50 a minute for each organisation."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from apps.providers import outcome
from apps.providers.whatsapp.errors import PairLimited
from faena import Breaker, Faena, Snooze, Upstream

SORTING: Final = {**outcome.SORTING, PairLimited: "retryable"}
"""A recipient who must wait is no reason to stop all calls, as `rate_limited` would:
`waiting_for_recipient` lets the job wait instead."""


TENANT_LIMITS: Final = ("50/min",)
"""Of each organisation."""


def whatsapp_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`. A tenant is an organisation.

    An unknown outcome is retried like other errors, so the customer may get a message twice. Where
    that is worse than never, catch `UnknownOutcome` in the handler and wait for a status that
    carries the message's `callback_data`.
    """
    options: dict[str, Any] = {
        "limits": ["80/s"],
        "tenant_limits": TENANT_LIMITS,
        "timeout": "15s",
        "breaker": Breaker(errors=0.5, open="30s"),
        "sorting": SORTING,
        **overrides,
    }
    return app.upstream("whatsapp", **options)


@contextmanager
def waiting_for_recipient() -> Generator[None]:
    """Around a call in a handler: if one recipient must wait, so does this job, and it uses no
    attempt; nor does the breaker count it."""
    try:
        yield
    except PairLimited as error:
        delay = timedelta(seconds=float(error.retry_after or 0))
        raise Snooze(delay, reason="too many messages to one recipient") from None
