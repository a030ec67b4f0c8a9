"""Reads the file of a request as it was written, or fails before its end."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

from faena.errors import ArchiveUnreadable
from faena.pg.archive.store import ObjectStore
from faena.pg.retrieval.record import Record


class Download:
    """One file."""

    def __init__(self, store: ObjectStore, of: Record) -> None:
        self._store = store
        self._of = of
        self.size = of.size or 0
        self.sha256 = of.sha256 or ""

    @property
    def name(self) -> str:
        """For whoever saves it: only plain letters."""
        table = "".join(one if one.isascii() and one.isalnum() else "-" for one in self._of.table)
        return f"{table}-{self._of.start.date()}-{self._of.id[:8]}.jsonl.gz"

    async def chunks(self) -> AsyncIterator[bytes]:
        """Its bytes; the last ones are given only if the checksum of all is right."""
        seen, held = hashlib.sha256(), b""
        async for chunk in self._store.get(self._of.key):
            seen.update(chunk)
            if held:
                yield held
            held = chunk
        if seen.hexdigest() != self.sha256:
            raise ArchiveUnreadable(f"file of retrieval {self._of.id} is damaged", op="download")
        yield held

    async def save(self, path: Path) -> None:
        """Into a file of this machine, which appears whole."""
        aside = path.with_name(f".{path.name}.part")
        try:
            with aside.open("wb") as file:
                async for chunk in self.chunks():
                    await asyncio.to_thread(file.write, chunk)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
