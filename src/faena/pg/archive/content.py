"""The lines of an object: compressed and counted when written, compared when read back.

A whole object is in memory when it is written; `Archive.rows` and `Archive.size` bound it. Reading
streams.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

import zstandard

from faena.errors import ArchiveUnreadable
from faena.pg.archive.manifest import Manifest, manifest_key, read_manifest
from faena.pg.archive.store import ObjectStore

_LEVEL: Final = 3
_LARGEST_MANIFEST: Final = 8 << 20


class Summary(NamedTuple):
    """What is compared: with the catalogue, the manifest, and the rows in the table."""

    rows: int
    digest: int
    """The sum of the first 60 bits of the SHA-256 of each line; the order does not matter."""


class Packed(NamedTuple):
    """A finished object."""

    blob: bytes
    rows: int
    raw_bytes: int
    sha256: str
    digest: int

    @property
    def summary(self) -> Summary:
        """For comparisons."""
        return Summary(self.rows, self.digest)


class Packer:
    """Collects lines into one object."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
        self._chunks: list[bytes] = []
        self.rows, self.raw_bytes, self._digest = 0, 0, 0

    def add(self, lines: Sequence[bytes]) -> None:
        """Lines without their ends."""
        self._digest += digest_of(lines)
        text = b"\n".join(lines) + b"\n"
        self.rows += len(lines)
        self.raw_bytes += len(text)
        self._chunks.append(self._compressor.compress(text))

    def finish(self) -> Packed:
        """The object; nothing can be added any more."""
        blob = b"".join([*self._chunks, self._compressor.flush()])
        sha256 = hashlib.sha256(blob).hexdigest()
        return Packed(blob, self.rows, self.raw_bytes, sha256, self._digest)


def digest_of(lines: Sequence[bytes]) -> int:
    """As `export.DIGEST` computes it in PostgreSQL."""
    sha256 = hashlib.sha256
    return sum(int.from_bytes(sha256(one).digest()[:8]) >> 4 for one in lines)


async def read_lines(store: ObjectStore, key: str, sha256: str) -> AsyncIterator[list[bytes]]:
    """The lines of an object, some at a time.

    Whether the object is the right one is known at its end: then `ArchiveUnreadable` is raised if
    its checksum is not `sha256`. Do not commit before the end.
    """
    seen, rest = hashlib.sha256(), b""
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    try:
        async for chunk in store.get(key):
            seen.update(chunk)
            *lines, rest = (rest + decompressor.decompress(chunk)).split(b"\n")
            if lines:
                yield lines
    except zstandard.ZstdError as error:
        raise ArchiveUnreadable(
            f"archive {key} must be compressed with zstd, and is damaged: {error}", op="archive"
        ) from error
    if seen.hexdigest() != sha256 or rest or not decompressor.eof:
        raise _damaged(key, sha256, seen.hexdigest())


async def check_bytes(store: ObjectStore, key: str, sha256: str) -> None:
    """Read a whole object, whose lines were compared before, and compare its checksum alone."""
    seen = hashlib.sha256()
    async for chunk in store.get(key):
        seen.update(chunk)
    if seen.hexdigest() != sha256:
        raise _damaged(key, sha256, seen.hexdigest())


def _damaged(key: str, sha256: str, found: str) -> ArchiveUnreadable:
    return ArchiveUnreadable(
        f"archive {key} must have the checksum {sha256[:12]}…, got {found[:12]}…: it is truncated, "
        f"damaged or changed",
        op="archive",
    )


async def read_back(store: ObjectStore, key: str, sha256: str) -> Summary:
    """Read a whole object, check it against its checksum, and count it."""
    rows, digest = 0, 0
    async for lines in read_lines(store, key, sha256):
        rows += len(lines)
        digest += digest_of(lines)
    return Summary(rows, digest)


async def fetch_manifest(store: ObjectStore, key: str) -> Manifest:
    """The manifest of an object."""
    blob = b""
    async for chunk in store.get(manifest_key(key)):
        blob += chunk
        if len(blob) > _LARGEST_MANIFEST:
            raise ArchiveUnreadable(f"the manifest of archive {key} is too large", op="archive")
    return read_manifest(blob, key)
