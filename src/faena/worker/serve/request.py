"""Reads the head of an HTTP request: what is asked for, or why it cannot be answered."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

HEAD_ENDS: Final = b"\r\n\r\n"
LONGEST: Final = 8_192
"""Bytes of a head."""
_MOST_FIELDS: Final = 64
_LINE: Final = re.compile(rb"([A-Z]{1,16}) ([\x21-\x7e]{1,2048}) HTTP/1\.([01])")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_ORIGIN: Final = re.compile(r"https?://[^/?]*", re.IGNORECASE)


class Request(NamedTuple):
    """A request, without a body."""

    method: str
    path: str
    """Without the query."""
    accept: str = ""
    is_last: bool = False
    """Whether the connection is closed after the answer."""


def read_request(head: bytes) -> Request | None:
    """The request of a head; None if it is no HTTP."""
    first, *lines = head.split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None or len(lines) > _MOST_FIELDS:
        return None
    fields: dict[str, str] = {}
    for one in lines:
        field = _FIELD.fullmatch(one)
        if field is None:
            return None
        name = field[1].decode().lower()
        value = field[2].decode("latin-1").strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    path = _ORIGIN.sub("", line[2].decode(), count=1).partition("?")[0]
    return Request(
        method=line[1].decode(),
        path=path or "/",
        accept=fields.get("accept", ""),
        is_last=_is_last(line[3] == b"1", fields),
    )


def _is_last(is_modern: bool, fields: dict[str, str]) -> bool:
    """A body is never read: what follows it could be taken for a request."""
    words = {word.strip().lower() for word in fields.get("connection", "").split(",")}
    has_body = "transfer-encoding" in fields or fields.get("content-length", "0") != "0"
    return has_body or "close" in words or not (is_modern or "keep-alive" in words)


def prefers_openmetrics(accept: str) -> bool:
    """Whether a client asks for OpenMetrics at least as much as for plain text."""
    found = {"application/openmetrics-text": 0.0, "text": 0.0}
    for part in accept.split(","):
        kind, *options = (word.strip().lower() for word in part.split(";"))
        name = "text" if kind in {"text/plain", "text/*", "*/*"} else kind
        if name in found:
            found[name] = max(found[name], _weight(options))
    modern = found["application/openmetrics-text"]
    return modern > 0 and modern >= found["text"]


def _weight(options: list[str]) -> float:
    for option in options:
        name, _, text = option.partition("=")
        if name.strip() == "q":
            try:
                return float(text)
            except ValueError:
                return 0.0
    return 1.0
