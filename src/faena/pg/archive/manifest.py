"""What an object of an archive holds, as it is stored beside it; and the keys of both.

    public.jobs/t-org-7/2023-01-01/9f1c…e2.jsonl.zst    rows, as compressed JSON lines
    public.jobs/t-org-7/2023-01-01/9f1c…e2.json         its manifest

An object has rows of one table, one period and one tenant. Folders are `<table>/<tenant>/<start of
the period>/`; `folder_of` gives that of a tenant. A row is one line: an object of column names and
values. A value is null, or the text that PostgreSQL writes for it (`"42"`, `"2023-01-05
12:00:00+00"`, `"{1,2}"`, `"\\x00ff"`, `"NaN"`), with UTC, ISO dates and hexadecimal bytes: so every
type comes back exactly, and `columns` says which type it was.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime
from typing import Final, Literal

import msgspec

from faena.errors import ArchiveUnreadable, shown

FORMAT: Final = 1
DATA: Final = ".jsonl.zst"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")


class Column(msgspec.Struct, frozen=True):
    """A column of the table, when its rows were exported."""

    name: str
    type: str
    """As PostgreSQL writes it: `numeric(10,2)`, `text[]`."""
    is_generated: bool = False
    """Computed by the table from others; it is not restored."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The document beside an object."""

    format: Literal[1] = FORMAT
    """The version of this document and of the lines."""
    table: str
    """`schema.table`"""
    columns: tuple[Column, ...]
    schema_digest: str
    """Of the columns: names and types."""
    by: str
    """The column of the time."""
    start: datetime
    """The period of the rows, a partition's or a day: its first instant …"""
    end: datetime
    """… and the first one after it."""
    first: str
    """`by` of the oldest row, as in its line; rows are in this order."""
    last: str
    """`by` of the newest row."""
    tenant_column: str | None
    """The column of the tenant; without one, rows of all tenants are together."""
    tenant: str | None
    """Whose rows these are; None without a tenant column, or where it is NULL."""
    key: str
    """The object that this document is about."""
    rows: int
    raw_bytes: int
    """Of the lines, before compression."""
    size: int
    """Of the object in bytes."""
    sha256: str
    """Of the object."""
    digest: str
    """The sum of the first 60 bits of the SHA-256 of each line."""
    exported_at: datetime

    def encode(self) -> bytes:
        """As it is stored."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)


def read_manifest(blob: bytes, key: str) -> Manifest:
    """A stored manifest; `key` is that of the object, for the error."""
    try:
        found = msgspec.json.decode(blob, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ArchiveUnreadable(
            f"the manifest of archive {key} cannot be read: {error}", op="archive"
        ) from error
    if found.key != key:
        raise ArchiveUnreadable(
            f"the manifest of archive {key} is about another one, {shown(found.key)}", op="archive"
        )
    return found


def schema_digest(columns: tuple[Column, ...]) -> str:
    """Tells whether two exports had the same columns."""
    return hashlib.sha256(msgspec.json.encode(columns)).hexdigest()[:32]


def new_key(table: str, tenant: str | None, start: datetime) -> str:
    """A key that no other object has, not even that of an earlier try."""
    return f"{folder_of(table, tenant)}/{start.date()}/{secrets.token_hex(16)}{DATA}"


def manifest_key(key: str) -> str:
    """Of the manifest of an object."""
    return f"{key.removesuffix(DATA)}.json"


def object_key(key: str) -> str:
    """Of the object to which a file belongs: itself, or the one that a manifest is about."""
    return f"{key.removesuffix('.json')}{DATA}" if key.endswith(".json") else key


def folder_of(table: str, tenant: str | None) -> str:
    """Where all objects of one tenant and table are; without a tenant, those that have none."""
    whose = "none" if tenant is None else _folder(tenant, "t-")
    return f"{_folder(table)}/{whose}"


def _folder(name: str, prefix: str = "") -> str:
    """The name itself if it is plain; else a digest of it."""
    if _PLAIN.fullmatch(name) and not name.startswith("x-"):
        return f"{prefix}{name}"
    return f"x-{hashlib.sha256(name.encode()).hexdigest()[:40]}"
