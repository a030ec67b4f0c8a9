"""Objects are written whole, read back, listed and removed, in a directory and in a bucket."""

from __future__ import annotations

import asyncio
import hashlib
import os
import urllib.request
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard

from faena.errors import ArchiveUnreadable, ConfigError, StoreRejected
from faena.pg import Postgres
from faena.pg.archive.catalogue import Wanted, add_entries, change_state, read_entries
from faena.pg.archive.content import Packer, digest_of, fetch_manifest, read_back, read_lines
from faena.pg.archive.manifest import (
    Column,
    Manifest,
    folder_of,
    manifest_key,
    new_key,
    read_manifest,
    schema_digest,
)
from faena.pg.archive.store import Bucket, ObjectStore, check_key, open_store, read_place
from tests._support.object_server import ObjectServer, running

START = datetime(2023, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with running() as server:
        yield server


@pytest.fixture(params=["directory", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "directory":
        return open_store(tmp_path / "archives")
    server: ObjectServer = request.getfixturevalue("server")
    return open_store(
        server.bucket(
            f"b{os.getpid()}-{tmp_path.name[-20:].strip('_')}".lower().replace("_", "-"),
            "campo/cold",
        )
    )


def fetched(link: str) -> bytes:
    with urllib.request.urlopen(link) as answer:
        return answer.read()


async def content(store: ObjectStore, key: str) -> bytes:
    return b"".join([chunk async for chunk in store.get(key)])


async def test_an_object_is_read_as_it_was_written_and_replaced(store: ObjectStore) -> None:
    key, blob = new_key("public.jobs", "org-7", START), os.urandom(3 << 20)
    await store.put(key, b"before")
    await store.put(key, blob)
    assert await content(store, key) == blob


async def test_objects_of_a_folder_are_listed_and_removed(store: ObjectStore) -> None:
    mine, other = (new_key("public.jobs", one, START) for one in ("org-7", "org-70"))
    for key in (mine, other):
        await store.put(key, b"abc")
    listed = [one async for one in store.list(folder_of("public.jobs", "org-7"))]
    assert listed == [(mine, 3)]
    await store.delete(mine, mine, new_key("public.jobs", None, START))
    assert [one.key async for one in store.list("")] == [other]
    await store.delete()


async def test_an_object_that_is_not_there_is_told(store: ObjectStore) -> None:
    with pytest.raises(ArchiveUnreadable, match=r"archive a/b\.json does not exist"):
        await content(store, "a/b.json")


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../x", "a/../b", "a//b", ".x", "a/.x", "ñ"])
async def test_a_key_that_is_not_plain_is_refused(store: ObjectStore, key: str) -> None:
    with pytest.raises(ConfigError, match="key must be folders and a name of plain letters"):
        await store.put(key, b"")


async def test_a_bucket_signs_links_and_a_directory_has_none(
    server: ObjectServer, tmp_path: Path
) -> None:
    bucket = open_store(server.bucket("signing"))
    await bucket.put("a/b", b"hello")
    link = await bucket.sign("a/b", timedelta(minutes=5))
    assert link is not None
    assert await asyncio.to_thread(fetched, link) == b"hello"
    assert await open_store(tmp_path).sign("a/b", timedelta(minutes=5)) is None


async def test_a_bucket_that_does_not_exist_is_named(server: ObjectServer) -> None:
    missing = open_store(
        Bucket(
            name="nobody-made-it",
            endpoint=server.endpoint,
            region="x",
            access_key="k",
            secret_key="s",
        )
    )

    async def listed() -> list[Any]:
        return [one async for one in missing.list("a")]

    for work in (missing.put("a/b", b""), content(missing, "a/b"), listed()):
        with pytest.raises(StoreRejected, match="bucket nobody-made-it does not exist: create it"):
            await work


@pytest.mark.parametrize("given", ["storage.example:9000", "http://", "ftp://x", "http://a b", 7])
def test_an_endpoint_that_is_no_address_is_refused(
    given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"^endpoint must be an address such as https://"):
        Bucket(name="cold", endpoint=given)
    Bucket(name="cold", endpoint="http://[::1]:9000/s3")


async def test_a_variable_with_a_bad_endpoint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAENA_ARCHIVE_ENDPOINT", "storage.example:9000")
    with pytest.raises(ConfigError, match=r"^FAENA_ARCHIVE_ENDPOINT must be an address"):
        await open_store("s3://cold/x").put("a/b", b"")


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
async def test_one_key_without_the_other_is_told(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(one, raising=False)
    monkeypatch.setenv(name, "k")
    with pytest.raises(StoreRejected, match=f"must have both keys, got {name}: give access_key"):
        await open_store("s3://cold/x").put("a/b", b"")


async def test_a_client_that_panics_is_told_in_a_sentence(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class RustPanic(Exception):
        pass

    async def fail(*_: Any, **__: Any) -> None:
        raise RustPanic("rust future panicked: unknown error")

    monkeypatch.setattr("obstore.put_async", fail)
    with pytest.raises(StoreRejected, match="has failed: check endpoint, region and keys"):
        await open_store(server.bucket("panicking")).put("a/b", b"")


async def test_what_is_not_given_comes_from_the_environment(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.bucket("surroundings")
    monkeypatch.setenv("FAENA_ARCHIVE_URL", "s3://surroundings/x")
    monkeypatch.setenv("FAENA_ARCHIVE_ENDPOINT", server.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    store = open_store(default=tmp_path)
    await store.put("a/b", b"1")
    assert store.url == "s3://surroundings/x"
    listed = server.client().list_objects_v2(Bucket="surroundings")["Contents"]
    assert [one["Key"] for one in listed] == ["x/a/b"]


async def test_a_file_that_is_being_written_is_no_object(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await store.put("a/b", b"1")
    (tmp_path / "a" / ".c.1234.part").write_bytes(b"half")
    assert [one async for one in store.list("a")] == [("a/b", 1)]


async def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreRejected, match="Not a directory"):
        await open_store(tmp_path / "file").put("a/b", b"")


@pytest.mark.parametrize("how", ["put", "write"])
async def test_a_file_and_its_folders_are_on_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A power cut loses what was not synced: bytes, names, folders."""
    seen: list[tuple[str, Path]] = []
    sync, rename = os.fsync, os.replace

    def watched_sync(handle: int) -> None:
        sync(handle)
        path = Path(f"/proc/self/fd/{handle}").readlink()
        seen.append(("folder", path) if path.is_dir() else (f"{path.stat().st_size} bytes", path))

    def watched_rename(source: Any, target: Any) -> None:
        rename(source, target)
        seen.append(("named", Path(target)))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"12"
        yield b"345"

    async def stored(key: str) -> list[tuple[str, Path]]:
        seen.clear()
        await (store.put(key, b"12345") if how == "put" else store.write(key, chunks()))
        return [*seen]

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(os, "replace", watched_rename)
    root, store = tmp_path / "archives", open_store(tmp_path / "archives")
    for key, folders in (
        ("a/b/c", {root / "a/b", root / "a", root, tmp_path}),
        ("a/b/d", {root / "a/b"}),
    ):
        (what, _), named, *synced = await stored(key)
        assert (what, named) == ("5 bytes", ("named", root / key))
        assert {path for kind, path in synced if kind == "folder"} == folders


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("s3://cold/campo/x", Bucket(name="cold", prefix="campo/x")),
        ("s3://cold", Bucket(name="cold")),
        ("file:///srv/a%20b", Path("/srv/a b")),
        ("/srv/archives", Path("/srv/archives")),
    ],
)
def test_places_are_paths_and_urls(given: str, wanted: Any) -> None:
    assert read_place(given) == wanted


@pytest.mark.parametrize(
    "given", ["gs://x/y", "s3://", "s3://A_B", "file://host/x", 7, "", "s3://k:s@cold"]
)
def test_other_places_are_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="must be"):
        read_place(given)


def test_a_secret_is_not_shown_and_comes_with_its_name() -> None:
    bucket = Bucket(name="cold", access_key="k", secret_key="hush")
    assert "hush" not in repr(bucket)
    assert "hush" not in open_store(bucket).url
    with pytest.raises(ConfigError, match="must be given together"):
        Bucket(name="cold", access_key="k")
    with pytest.raises(ConfigError, match="prefix must be"):
        Bucket(name="cold", prefix="../x")


# -- content --------------------------------------------------------------------------------------


def packed(*lines: bytes) -> Any:
    packer = Packer()
    packer.add(lines)
    return packer.finish()


async def test_lines_come_back_with_their_count_and_digest(store: ObjectStore) -> None:
    lines = [b'{"id":"%d"}' % n for n in range(100_000)]
    one = packed(*lines)
    await store.put("a/b", one.blob)
    assert await read_back(store, "a/b", one.sha256) == one.summary == (100_000, digest_of(lines))
    assert [line async for some in read_lines(store, "a/b", one.sha256) for line in some] == lines
    assert zstandard.decompress(one.blob, one.raw_bytes).splitlines() == lines


@pytest.mark.parametrize("harm", ["truncated", "flipped", "longer", "plain", "empty", "another"])
async def test_an_object_that_is_damaged_is_told(tmp_path: Path, harm: str) -> None:
    store, one = open_store(tmp_path), packed(*(b'{"id":"%d"}' % n for n in range(1000)))
    flipped = bytearray(one.blob)
    flipped[len(flipped) // 2] ^= 1
    blob = {
        "truncated": one.blob[:-9],
        "flipped": bytes(flipped),
        "longer": one.blob + b"x",
        "plain": b'{"id":"1"}\n',
        "empty": b"",
        "another": packed(b'{"id":"1"}').blob,
    }[harm]
    await store.put("a/b", blob)
    with pytest.raises(ArchiveUnreadable, match=r"archive a/b must"):
        await read_back(store, "a/b", one.sha256)


def manifest(**changes: Any) -> Manifest:
    columns = (Column("id", "bigint"), Column("at", "timestamp with time zone"))
    given: dict[str, Any] = {
        "table": "public.jobs",
        "columns": columns,
        "schema_digest": schema_digest(columns),
        "by": "at",
        "start": START,
        "end": START + timedelta(days=1),
        "first": "2023-01-01 00:00:00+00",
        "last": "2023-01-01 23:00:00+00",
        "tenant_column": None,
        "tenant": None,
        "key": "a/b.jsonl.zst",
        "rows": 2,
        "raw_bytes": 30,
        "size": 20,
        "sha256": hashlib.sha256(b"").hexdigest(),
        "digest": "17",
        "exported_at": START,
    }
    return Manifest(**{**given, **changes})


async def test_a_manifest_comes_back(store: ObjectStore) -> None:
    one = manifest()
    await store.put(manifest_key(one.key), one.encode())
    assert await fetch_manifest(store, one.key) == one


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (b"{", "cannot be read"),
        (b"\xff", "cannot be read"),
        (manifest().encode().replace(b'"format": 1', b'"format": 2'), "cannot be read"),
        (manifest(key="x/y").encode(), "is about another one"),
    ],
)
def test_a_manifest_that_is_none_is_told(blob: bytes, words: str) -> None:
    with pytest.raises(ArchiveUnreadable, match=words):
        read_manifest(blob, "a/b.jsonl.zst")


def test_no_two_tenants_share_a_folder() -> None:
    names = ["a", "A", "a/b", "a b", "", "x-1", "../a", "ñ", "none", "t-a", "a" * 300, "-"]
    folders = [folder_of("public.jobs", one) for one in names] + [folder_of("public.jobs", None)]
    assert len({*folders}) == len(folders)
    for one in folders:
        assert check_key(one) == one
    assert new_key("public.jobs", "a", START) != new_key("public.jobs", "a", START)


# -- catalogue ------------------------------------------------------------------------------------


async def test_entries_are_found_by_tenant_time_and_state(pg: Postgres) -> None:
    one = manifest(tenant_column="org", tenant="a")
    two = manifest(
        key="c/d.jsonl.zst", tenant_column="org", tenant="b", first="2023-02-01", last="2023-02-02"
    )
    async with pg.transaction() as connection:
        added = [(one, ["a", one.last, "9"]), (two, [None, two.last, "{1,2}"])]
        ids = await add_entries(connection, "file:///x", added, ["org", "at", "id"])
        assert await read_entries(connection, Wanted("public.jobs")) == []
        assert await change_state(connection, ids, "archived", of=["writing"]) == 2
        assert await change_state(connection, ids, "archived", of=["writing"]) == 0

        async def keys(**given: Any) -> list[str]:
            return [e.key for e in await read_entries(connection, Wanted("public.jobs", **given))]

        assert await keys() == [one.key, two.key]
        assert await keys(tenant="b") == [two.key]
        assert await keys(until=datetime(2023, 2, 1, tzinfo=UTC)) == [one.key]
        assert await keys(since=datetime(2023, 1, 2, tzinfo=UTC)) == [two.key]
        assert await keys(since=datetime(2023, 2, 2, tzinfo=UTC)) == [two.key]
        assert await keys(states=("writing",)) == []
        (first, second) = await read_entries(connection, Wanted("public.jobs"))
        assert (first.summary, first.start, first.last_key) == (
            (2, 17),
            START,
            ["a", one.last, "9"],
        )
        assert second.last_key == [None, two.last, "{1,2}"]
        assert await read_entries(connection, Wanted("public.jobs"), after=first.id) == [second]
