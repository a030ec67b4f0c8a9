"""Names of objects: folders and a name, of plain characters, none of which begins with a dot. So no
key leaves the place where objects are kept, and none means anything else in an address."""

from __future__ import annotations

import re
from typing import Final

from apps.providers.storage.errors import Permanent

_KEY: Final = re.compile(
    r"[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,199}(/[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,199})*"
)
_MOST: Final = 900


def is_key(key: str) -> bool:
    """Whether an object, or a folder, may be called so."""
    return len(key) <= _MOST and _KEY.fullmatch(key) is not None


def check_key(key: str) -> str:
    """Return a key if it is one, such as `org-7/invoices/2026-11.pdf`."""
    if not is_key(key):
        raise Permanent(
            f"a key must be at most {_MOST} letters, digits and . _ = - in folders, as in "
            "org-7/invoices/2026-11.pdf"
        )
    return key
