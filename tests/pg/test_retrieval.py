"""A tenant gets its archived rows of a time, and nobody else's, as one file."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.errors import (
    ArchiveUnreadable,
    ArgumentError,
    ConfigError,
    InvalidTransition,
    JobNotFound,
)
from faena.pg import Postgres, Retrievals, RetrievalView
from faena.pg.archive.manifest import manifest_key
from faena.pg.archive.store import ObjectStore, open_store
from faena.pg.retrieval import collection
from faena.pg.retrieval.link import Link, LinkExpired, LinkRefused, binding_of, write_token
from faena.pg.retrieval.option import Retrieval
from faena.pg.retrieval.retrievals import Wish
from faena.states import State
from tests._support.archived import archive, keys_in, row
from tests._support.eventually import eventually
from tests._support.object_server import ObjectServer, running
from tests._support.working import serving

SECRET = "a" * 32
YEAR = {"start": date(2023, 1, 1), "end": date(2023, 12, 31)}


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "archives")


@pytest.fixture
async def retrievals(pg: Postgres, store: ObjectStore, clock: Clock) -> Retrievals:
    return pg.retrieval(secrets=SECRET, to=store.url, clock=clock)


@pytest.fixture
async def served(app: Faena, retrievals: Retrievals) -> AsyncIterator[Retrievals]:
    async with serving(app):
        yield retrievals


async def ended(retrievals: Retrievals, view: RetrievalView, tenant: str) -> RetrievalView:
    async def is_over() -> bool:
        return (await retrievals.look(view.id, tenant=tenant)).state != "waiting"

    await eventually(is_over)
    return await retrievals.look(view.id, tenant=tenant)


async def retrieved(retrievals: Retrievals, tenant: str, **more: Any) -> RetrievalView:
    given = {"table": "jobs", **YEAR, **more}
    view = await retrievals.retrieve(given.pop("table"), tenant=tenant, **given)
    return await ended(retrievals, view, tenant)


async def rows_of(retrievals: Retrievals, view: RetrievalView, tenant: str) -> list[str]:
    token, _ = await retrievals.link(view.id, tenant=tenant)
    file = await retrievals.open(token, tenant=tenant)
    blob = b"".join([chunk async for chunk in file.chunks()])
    assert len(blob) == file.size == view.size
    return [json.loads(line)["id"] for line in gzip.decompress(blob).splitlines()]


async def test_a_tenant_gets_the_rows_of_the_time_and_only_its_own(
    pg: Postgres, served: Retrievals, store: ObjectStore
) -> None:
    days = ["2022-12-31 23:59:59.999999+00", "2023-01-01 00:00:00+00", "2023-12-31 23:59:59.5+00"]
    await archive(pg, store, "org-1", [row(n, at) for n, at in enumerate(days)])
    more = [row(3, "2023-05-05 05:05:05+00"), row(4, "2024-01-01 00:00:00+00")]
    await archive(pg, store, "org-1", more)
    await archive(pg, store, "org-1", [row(5, "2023-02-02 00:00:00+00")], table="public.calls")
    await archive(pg, store, "org-10", [row(6, "2023-02-02 00:00:00+00")])
    await archive(pg, store, None, [row(7, "2023-02-02 00:00:00+00")])
    await archive(pg, store, None, [row(8, "2023-02-02 00:00:00+00")], tenant_column=None)
    view = await retrieved(served, "org-1")
    assert (view.state, view.rows, view.table) == ("ready", 3, "public.jobs")
    assert await rows_of(served, view, "org-1") == ["1", "2", "3"]
    other = await retrieved(served, "org-10")
    assert await rows_of(served, other, "org-10") == ["6"]


async def test_the_same_request_finds_the_same_job_and_another_begins_its_own(
    pg: Postgres, app: Faena, served: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    first = await retrieved(served, "org-1")
    texts = {"start": "2023-01-01", "end": "2023-12-31"}
    again = await served.retrieve("public.jobs", tenant="org-1", **texts)
    assert (again.id, again.state) == (first.id, "ready")
    others = [
        await retrieved(served, "org-1", end=date(2023, 12, 30)),
        await retrieved(served, "org-2"),
    ]
    assert len({first.id, *(one.id for one in others)}) == 3
    assert [one.rows for one in others] == [1, 0]
    assert (await app.queues["archives"].counts())["completed"] == 3


async def test_a_request_is_enqueued_again_if_its_process_died_before_that(
    pg: Postgres, app: Faena, retrievals: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrievals.retrieve("jobs", tenant="org-1", **YEAR)
    await app.queues["archives"].handle(view.id).remove()
    assert (await retrievals.retrieve("jobs", tenant="org-1", **YEAR)).id == view.id
    async with serving(app):
        assert (await ended(retrievals, view, "org-1")).rows == 1


async def test_a_time_without_archives_is_an_empty_file_and_said_so(
    pg: Postgres, served: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrieved(served, "org-1", start=date(2020, 1, 1), end=date(2020, 1, 1))
    assert (view.state, view.rows) == ("ready", 0)
    assert await rows_of(served, view, "org-1") == []


@pytest.mark.parametrize("harm", ["flipped", "cut", "gone", "another's manifest", "no manifest"])
async def test_a_damaged_archive_fails_the_request_and_leaves_no_file(
    pg: Postgres, app: Faena, served: Retrievals, store: ObjectStore, tmp_path: Path, harm: str
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    key = await archive(pg, store, "org-1", [row(n, "2023-02-03 00:00:00+00") for n in range(999)])
    other = await archive(pg, store, "org-2", [row(2, "2023-02-02 00:00:00+00")])
    path = tmp_path / "archives" / key
    blob = bytearray(path.read_bytes())
    if harm == "flipped":
        blob[len(blob) // 2] ^= 1
        path.write_bytes(blob)
    elif harm == "cut":
        path.write_bytes(blob[:-5])
    elif harm == "gone":
        path.unlink()
    else:
        beside = tmp_path / "archives" / manifest_key(key)
        text = (tmp_path / "archives" / manifest_key(other)).read_text().replace(other, key)
        beside.write_text(text) if harm == "another's manifest" else beside.unlink()
    view = await retrieved(served, "org-1")
    assert view.state == "failed"
    assert key.removesuffix(".jsonl.zst") in (view.problem or "")
    assert await keys_in(store, "retrievals") == []
    with pytest.raises(JobNotFound, match="it is failed"):
        await served.link(view.id, tenant="org-1")
    assert (await app.queues["archives"].counts())["dead"] == 1
    again = await served.retrieve("jobs", tenant="org-1", **YEAR)
    assert again.id != view.id


async def test_an_entry_with_the_wrong_tenant_gives_no_rows_away(
    pg: Postgres, served: Retrievals, store: ObjectStore
) -> None:
    """The object itself says whose it is."""
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    await archive(pg, store, "org-2", [row(2, "2023-02-02 00:00:00+00")])
    async with pg.transaction() as connection:
        await connection.execute("UPDATE faena.archives SET tenant = 'org-1'")
    view = await retrieved(served, "org-1")
    assert view.state == "failed"
    assert "is not the one of the catalogue" in (view.problem or "")
    assert await keys_in(store, "retrievals") == []


async def test_a_job_that_died_without_a_word_fails_its_request(
    pg: Postgres, app: Faena, retrievals: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrievals.retrieve("jobs", tenant="org-1", **YEAR)
    await app.queues["archives"].handle(view.id).cancel()
    view = await retrievals.look(view.id, tenant="org-1")
    assert (view.state, view.problem) == ("failed", "its job is cancelled")


async def test_what_is_not_valid_is_refused(
    pg: Postgres, retrievals: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    good: dict[str, Any] = {"table": "jobs", "tenant": "org-1", **YEAR}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"table": "invoices"}, "table must be one that has archives"),
        ({"table": "../jobs"}, "table must be"),
        ({"table": "jobs\0"}, "table must be a name"),
        ({"table": 7}, "table must be a name"),
        ({"start": "2023-13-01"}, "from must be a day"),
        ({"start": "0001-01-01"}, "from must be a day"),
        ({"start": None}, "from must be a day"),
        ({"end": "2023-01-01T00:00"}, "to must have a time zone"),
        ({"end": date(2022, 12, 31)}, "from must not be after to"),
        ({"tenant": ""}, "tenant must be a text"),
        ({"tenant": "a\0b"}, "tenant must be a text"),
        ({"tenant": None}, "tenant must be a text"),
    ]
    for change, words in wrong:
        given = {**good, **change}
        with pytest.raises(ArgumentError, match=words):
            await retrievals.retrieve(given.pop("table"), **given)


async def test_a_table_without_a_tenant_column_is_given_to_nobody(
    pg: Postgres, retrievals: Retrievals, store: ObjectStore, tmp_path: Path
) -> None:
    pg.retain("bills", keep="1y", then="delete")
    async with pg.transaction() as connection:
        await connection.execute(
            "INSERT INTO faena.retentions (table_name, keep) VALUES ('public.bills', '1y')"
        )
    rows = [row(1, "2023-02-02 00:00:00+00")]
    await archive(pg, store, None, rows, table="public.shared", tenant_column=None)
    for table in ("bills", "shared"):
        expected = f"table must be one whose retention names the tenant's column, got '{table}'"
        with pytest.raises(ArgumentError, match=expected):
            await retrievals.retrieve(table, tenant="org-1", **YEAR)
    await archive(pg, store, "org-1", rows, table="public.shared")
    assert (await retrievals.retrieve("shared", tenant="org-1", **YEAR)).state == "waiting"


async def test_a_request_that_waits_has_no_link_yet(
    pg: Postgres, retrievals: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrievals.retrieve("jobs", tenant="org-1", **YEAR)
    with pytest.raises(InvalidTransition, match="the retrieval has no file yet"):
        await retrievals.link(view.id, tenant="org-1")


STRANGE = ["a/b", "a_b", "../a", "a%2fb", "a b", "ñandú", "x-1", "none", "A", "a" * 300, "'; --"]


async def test_tenants_with_strange_names_have_their_own_rows(
    pg: Postgres, served: Retrievals, store: ObjectStore
) -> None:
    for number, tenant in enumerate(STRANGE):
        await archive(pg, store, tenant, [row(number, "2023-02-02 00:00:00+00")])
    for number, tenant in enumerate(STRANGE):
        view = await retrieved(served, tenant)
        assert await rows_of(served, view, tenant) == [str(number)], tenant


async def test_another_tenants_request_does_not_exist(
    pg: Postgres, served: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrieved(served, "org-1")
    token, _ = await served.link(view.id, tenant="org-1")
    for id_ in (view.id, "0" * 32, "", "../x", "a\0", "ñ" * 32, view.id.upper()):
        with pytest.raises(JobNotFound, match="there is no such retrieval"):
            await served.look(id_, tenant="org-2")
        with pytest.raises(JobNotFound, match="there is no such retrieval"):
            await served.link(id_, tenant="org-2")
    with pytest.raises(LinkRefused):
        await served.open(token, tenant="org-2")


async def test_a_link_and_its_file_end(
    pg: Postgres, served: Retrievals, store: ObjectStore, clock: Clock
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrieved(served, "org-1")
    token, until = await served.link(view.id, tenant="org-1")
    assert until.timestamp() == clock.now + 3600
    clock.now += 3599
    await served.open(token, tenant="org-1")
    clock.now += 1
    with pytest.raises(LinkExpired, match="has expired"):
        await served.open(token, tenant="org-1")
    clock.now += 82_000
    late, until = await served.link(view.id, tenant="org-1")
    assert until == view.expires_at
    assert await keys_in(store, "retrievals") != []
    clock.now += 800
    assert (await served.look(view.id, tenant="org-1")).state == "expired"
    with pytest.raises(LinkExpired):
        await served.open(late, tenant="org-1")
    await served.sweep()
    assert await keys_in(store, "retrievals") == []
    again = await retrieved(served, "org-1")
    assert (again.state, again.rows) == ("ready", 1)
    assert again.id != view.id


async def test_rows_of_ended_requests_are_forgotten_after_a_week(
    pg: Postgres, served: Retrievals, store: ObjectStore, clock: Clock
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrieved(served, "org-1")
    clock.now += 90_000
    assert await served.sweep() == 0
    async with pg.transaction() as connection:
        words = "UPDATE faena.retrievals SET changed_at = now() - interval '8 days'"
        await connection.execute(words)
    assert await served.sweep() == 1
    with pytest.raises(JobNotFound):
        await served.look(view.id, tenant="org-1")


async def test_a_file_that_was_changed_is_not_given_to_its_end(
    pg: Postgres, served: Retrievals, store: ObjectStore, tmp_path: Path
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrieved(served, "org-1")
    (key,) = await keys_in(store, "retrievals")
    (tmp_path / "archives" / key).write_bytes(b"x" * (view.size or 0))
    token, _ = await served.link(view.id, tenant="org-1")
    file = await served.open(token, tenant="org-1")
    with pytest.raises(ArchiveUnreadable, match="is damaged"):
        assert [chunk async for chunk in file.chunks()] == []


async def test_an_attempt_that_was_overtaken_leaves_no_file(
    pg: Postgres, app: Faena, retrievals: Retrievals, store: ObjectStore
) -> None:
    """As one that was frozen while it wrote, and wakes up when another has ended the request."""
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrievals.retrieve("jobs", tenant="org-1", **YEAR)
    write = type(store).write

    async def slow(self: Any, key: str, chunks: Any) -> None:
        type(store).write = write  # type: ignore[method-assign]
        async with serving(app):
            await ended(retrievals, view, "org-1")
        await write(self, key, chunks)

    type(store).write = slow  # type: ignore[method-assign]
    try:
        await _work(retrievals, view)
    finally:
        type(store).write = write  # type: ignore[method-assign]
    assert len(await keys_in(store, "retrievals")) == 1
    view = await retrievals.look(view.id, tenant="org-1")
    assert await rows_of(retrievals, view, "org-1") == ["1"]


async def _work(retrievals: Retrievals, view: RetrievalView) -> None:
    from faena.job import Job, Spec

    await retrievals._work(Wish(view.id), Job("archives", view.id, Spec(task="x")))


async def test_saving_writes_a_whole_file(
    pg: Postgres, served: Retrievals, store: ObjectStore, tmp_path: Path
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00", note="ñ")])
    view = await retrieved(served, "org-1")
    await served.save(view.id, tmp_path / "out.gz", tenant="org-1")
    assert json.loads(gzip.decompress((tmp_path / "out.gz").read_bytes()))["note"] == "ñ"
    with pytest.raises(JobNotFound):
        await served.save(view.id, tmp_path / "other.gz", tenant="org-2")


def test_retrieval_must_be_declared_once_and_with_good_secrets(
    pg: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAENA_ARCHIVE_SECRET", raising=False)
    with pytest.raises(ConfigError, match="retrieval"):
        _ = pg.retrievals
    for wrong in ("short", ["a" * 31], [SECRET, ""], [], [7]):
        with pytest.raises(ConfigError, match="secrets must have at least 32") as raised:
            pg.retrieval(secrets=wrong)
        assert "short" not in str(raised.value)
    for name, value in {"lifetime": "10s", "keep": "31d", "queue": "A B", "to": "gs://x"}.items():
        with pytest.raises(ConfigError):
            pg.retrieval(secrets=SECRET, **{name: value})
    made = pg.retrieval()
    with pytest.raises(ConfigError, match="declared twice"):
        pg.retrieval()
    with pytest.raises(ConfigError, match="FAENA_ARCHIVE_SECRET"):
        made.options.signing()
    monkeypatch.setenv("FAENA_ARCHIVE_SECRET", f"{SECRET}, {'b' * 40}")
    assert made.options.signing() == (SECRET.encode(), b"b" * 40)
    assert SECRET not in repr(Retrieval(secrets=SECRET))


# -- a bucket -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def objects() -> Iterator[ObjectServer]:
    with running() as server:
        yield server


async def test_a_file_is_written_to_a_bucket_in_parts(
    pg: Postgres, app: Faena, objects: ObjectServer, clock: Clock
) -> None:
    bucket = objects.bucket("retrieved")
    store, day = open_store(bucket), "2023-02-02 00:00:00+00"
    some = [row(n, day, noise=f"{n * 7919:x}" * 40) for n in range(20_000)]
    await archive(pg, store, "org-1", some)
    broken = await archive(pg, store, "org-2", some)
    await store.put(broken, b"damaged")
    retrievals = pg.retrieval(secrets=SECRET, to=bucket, clock=clock)
    async with serving(app):
        view = await retrieved(retrievals, "org-1")
        assert await rows_of(retrievals, view, "org-1") == [str(n) for n in range(20_000)]
        failed = await retrieved(retrievals, "org-2")
    assert failed.state == "failed"
    assert len(await keys_in(store, "retrievals")) == 1
    clock.now += timedelta(days=2).total_seconds()
    await retrievals.sweep()
    assert await keys_in(store, "retrievals") == []
    assert await app.queues["archives"].handle(view.id).state() is State.COMPLETED


async def test_all_objects_are_read_page_by_page(
    pg: Postgres, served: Retrievals, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "_PAGE", 2)
    for number in range(5):
        await archive(pg, store, "org-1", [row(number, f"2023-02-0{number + 1} 00:00:00+00")])
    view = await retrieved(served, "org-1")
    assert await rows_of(served, view, "org-1") == ["0", "1", "2", "3", "4"]


async def test_a_request_whose_file_has_expired_begins_anew_before_it_is_swept(
    pg: Postgres, served: Retrievals, store: ObjectStore, clock: Clock
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrieved(served, "org-1")
    clock.now += 90_000
    again = await retrieved(served, "org-1")
    assert (again.state, again.rows) == ("ready", 1)
    assert again.id != view.id


async def test_nothing_is_retrieved_while_the_tenant_is_erased(
    pg: Postgres, served: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    async with pg.transaction() as connection:
        await connection.execute(
            "INSERT INTO faena.erasures (id, tenant, requested_by, reason, cancels_live)"
            " VALUES ('e', 'org-1', 'ana', 'asked', true)"
        )
    with pytest.raises(InvalidTransition, match="are being erased"):
        await served.retrieve("jobs", tenant="org-1", **YEAR)
    async with pg.transaction() as connection:
        await connection.execute("UPDATE faena.erasures SET state = 'done'")
    assert (await retrieved(served, "org-1")).state == "ready"


@pytest.mark.parametrize("tenant", [None, "org-1"])
async def test_a_link_that_was_signed_for_another_tenant_or_file_is_refused(
    pg: Postgres, served: Retrievals, store: ObjectStore, clock: Clock, tenant: str | None
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    view = await retrieved(served, "org-1")
    (key,) = await keys_in(store, "retrievals")
    for owner, file, is_good in (
        ("org-1", key, True),
        ("org-2", key, False),
        ("org-1", "x", False),
    ):
        link = Link(view.id, int(clock.now) + 60, binding_of(owner, file))
        token = write_token(link, served.options.signing())
        if is_good:
            assert (await served.open(token, tenant=tenant)).size == view.size
        else:
            with pytest.raises(LinkRefused):
                await served.open(token, tenant=tenant)


async def test_a_link_to_a_file_that_was_removed_tells_another_tenant_nothing(
    pg: Postgres, served: Retrievals, store: ObjectStore
) -> None:
    await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
    token, _ = await served.link((await retrieved(served, "org-1")).id, tenant="org-1")
    async with pg.transaction() as connection:
        await connection.execute("UPDATE faena.retrievals SET state = 'erased'")
    for tenant, expected in ((None, LinkExpired), ("org-1", LinkExpired), ("org-2", LinkRefused)):
        with pytest.raises(expected):
            await served.open(token, tenant=tenant)
