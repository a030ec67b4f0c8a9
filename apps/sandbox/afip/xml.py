"""XML as the services write it: on one line, empty text as `<CAE />`, nulls left out."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final
from xml.sax.saxutils import escape

from starlette.responses import Response

TEXT_XML: Final = "text/xml; charset=utf-8"
SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"
SCHEMAS: Final = (
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
)
DECLARATION: Final = '<?xml version="1.0" encoding="utf-8"?>'

Content = str | int | Decimal | Iterable[str] | None


def node(name: str, content: Content) -> str:
    """An element: text is escaped, children (a list of elements) are not."""
    if content is None:
        return ""
    if isinstance(content, Decimal):
        content = number(content)
    inner = escape(f"{content}") if isinstance(content, str | int) else "".join(content)
    return f"<{name}>{inner}</{name}>" if inner else f"<{name} />"


def number(value: Decimal) -> str:
    """A double without padding: `122`, `5.25`."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def xml_response(content: str, status: int = 200) -> Response:
    """An answer with its type."""
    return Response(content, status, media_type=TEXT_XML)
