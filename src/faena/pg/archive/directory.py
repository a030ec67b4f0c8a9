"""Objects as files of a directory; each is written aside, synced and renamed."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Final

from faena.errors import ArchiveUnreadable, StoreRejected, StoreUnavailable
from faena.pg.archive.store import Listed, check_key

_CHUNK: Final = 1 << 20
_ASIDE: Final = ".part"
_TRIES: Final = 5


class DirectoryStore:
    """Objects below one directory, which is created with the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def url(self) -> str:
        """As a file: URL."""
        return self._path.absolute().as_uri()

    async def put(self, key: str, blob: bytes) -> None:
        """Durable: the file and its directory are synced before it returns."""
        with _translated(key):
            await asyncio.to_thread(self._patiently, self._path / check_key(key), blob)

    def _patiently(self, path: Path, blob: bytes) -> None:
        """Whoever deletes the last object of a folder may remove it before this one is in it."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return self._write(path, blob)
        return self._write(path, blob)

    def _write(self, path: Path, blob: bytes) -> None:
        new = _make(path.parent)
        aside = _aside(path)
        try:
            with aside.open("xb") as file:
                file.write(blob)
                _flush(file)
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        for folder in (path.parent, *new):
            _sync(folder)

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> None:
        """As `put`; the file has another name until it is whole."""
        with _translated(key):
            path = self._path / check_key(key)
            new, aside = await asyncio.to_thread(_begin, path)
            try:
                with aside.open("ab") as file:
                    async for chunk in chunks:
                        await asyncio.to_thread(file.write, chunk)
                    await asyncio.to_thread(_flush, file)
                await asyncio.to_thread(aside.replace, path)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
            for folder in (path.parent, *new):
                await asyncio.to_thread(_sync, folder)

    async def get(self, key: str) -> AsyncIterator[bytes]:
        """In chunks of a mebibyte; no file is open in between, where a caller may be cancelled."""
        path, at = self._path / check_key(key), 0
        with _translated(key):
            while chunk := await asyncio.to_thread(_read, path, at):
                at += len(chunk)
                yield chunk

    async def delete(self, *keys: str) -> None:
        """Also removes folders that become empty, and files of writers that died."""
        for key in keys:
            with _translated(key):
                await asyncio.to_thread(self._remove, self._path / check_key(key))

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        for left in path.parent.glob(f".{path.name}.*{_ASIDE}"):
            left.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or gone
            for folder in path.parents:
                if folder == self._path:
                    break
                folder.rmdir()

    async def list(self, prefix: str) -> AsyncIterator[Listed]:
        """Files that are being written are left out."""
        folder = self._path / check_key(prefix) if prefix else self._path
        with _translated(prefix):
            for one in await asyncio.to_thread(lambda: [*self._files(folder)]):
                yield one

    def _files(self, folder: Path) -> Iterator[Listed]:
        for path in folder.rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                yield Listed(path.relative_to(self._path).as_posix(), path.stat().st_size)

    async def sign(self, key: str, lifetime: timedelta) -> str | None:
        """Nobody outside can read a file."""
        del key, lifetime
        return None


def _aside(path: Path) -> Path:
    """A new name for a file that is not whole yet."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{_ASIDE}")


def _begin(path: Path) -> tuple[list[Path], Path]:
    """An empty file aside, which keeps its folder from being removed."""
    for _ in range(_TRIES):
        new, aside = _make(path.parent), _aside(path)
        with suppress(FileNotFoundError):
            aside.open("xb").close()
            return new, aside
    raise FileNotFoundError(path)


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _make(folder: Path) -> list[Path]:
    """Create a folder; returns those that have a new entry, for their sync."""
    parents = [one.parent for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return parents


def _read(path: Path, at: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(_CHUNK)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _translated(key: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ArchiveUnreadable(f"archive {key} does not exist", op="archive") from error
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise StoreRejected(f"archive {key}: {error.strerror}", op="archive") from error
    except OSError as error:
        raise StoreUnavailable(f"archive {key}: {error.strerror or error}", op="archive") from error
