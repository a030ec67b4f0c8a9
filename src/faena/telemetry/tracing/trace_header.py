"""The headers of a job that carry its trace: those of W3C Trace Context.

OpenTelemetry is not needed to read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
LONGEST_STATE: Final = 512
"""Characters of a `tracestate` that every system must pass on; a longer one is left out."""

_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LATEST: Final = "00"
"""The version whose form is known: later ones may have more at the end."""


class Origin(NamedTuple):
    """The span in which a job was enqueued."""

    trace_id: str
    span_id: str
    is_sampled: bool


def origin_of(headers: Mapping[str, str]) -> Origin | None:
    """What `traceparent` says; None without one, and for one that is not valid."""
    found = _PARENT.fullmatch(headers[TRACEPARENT]) if TRACEPARENT in headers else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    is_known = version != "ff" and not (version == _LATEST and more)
    if not (is_known and trace_id.strip("0") and span_id.strip("0")):
        return None
    return Origin(trace_id, span_id, bool(int(flags, 16) & 1))
