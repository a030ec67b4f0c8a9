"""Whether an app is traced: as it says, or if the program has set up OpenTelemetry.

Importing this imports nothing of OpenTelemetry.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from faena.errors import ConfigError, shown

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from faena.telemetry.tracing.tracing import Tracing

_API = "opentelemetry.trace"


def check_tracing(given: Any) -> bool | TracerProvider | None:
    """Return `given` if it says whether to trace, and with what."""
    if given is True:
        _make(None)  # refused now rather than at the first job
    elif not (given is None or given is False or callable(getattr(given, "get_tracer", None))):
        raise ConfigError(
            f"tracing must be True, False, None or a TracerProvider, got {shown(given)}",
            field="tracing",
            value=given,
        )
    return given


def chosen(given: bool | TracerProvider | None) -> Tracing | None:
    """What makes the spans; None if none are made."""
    if given is False:
        return None
    if given is None:
        return _make(None) if _has_provider() else None
    return _make(None if given is True else given)


def _has_provider() -> bool:
    """Whether the program has one: then it has imported the API."""
    api = sys.modules.get(_API)
    if api is None:
        return False
    is_none = (api.ProxyTracerProvider, api.NoOpTracerProvider)
    return not isinstance(api.get_tracer_provider(), is_none)


def _make(provider: TracerProvider | None) -> Tracing:
    try:
        from faena.telemetry.tracing.tracing import Tracing  # noqa: PLC0415 - optional: `otel`
    except ImportError:
        raise ConfigError(
            "tracing needs the extra otel: install it (in a clone of Faena: pip install '.[otel]')",
            field="tracing",
        ) from None
    return Tracing(provider)


def carried() -> dict[str, str]:
    """The current span, for another process of the same attempt; empty if there is none."""
    headers: dict[str, str] = {}
    if _API in sys.modules:
        from faena.telemetry.tracing.tracing import Tracing  # noqa: PLC0415 - see above

        Tracing.stamp(headers)
    return headers


def continued(headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """Go on with a span of another process, if this one has OpenTelemetry."""
    if not headers or _API not in sys.modules:
        return nullcontext()
    from faena.telemetry.tracing.tracing import continued as go_on  # noqa: PLC0415 - see above

    return go_on(headers)
