"""A process that dies while it collects a file: the next attempt ends it, and no half is served."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path

import pytest

from faena import Faena
from faena.job import Job, Spec
from faena.outcomes import Discard
from faena.pg import Postgres, Retrievals
from faena.pg.archive.store import ObjectStore, open_store
from faena.pg.retrieval.retrievals import Wish
from tests._support import killed_step
from tests._support.archived import archive, keys_in, row
from tests._support.forked import Forked

SECRET = "s" * 40
YEAR = {"start": date(2023, 1, 1), "end": date(2023, 12, 31)}


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "archives")


@pytest.fixture
async def retrievals(pg: Postgres, store: ObjectStore) -> Retrievals:
    day = "2023-03-02 00:00:00+00"
    for part in range(3):
        await archive(pg, store, "org-1", [row(n, day) for n in range(part * 10, part * 10 + 10)])
    await archive(pg, store, "org-2", [row(99, day)])
    return pg.retrieval(secrets=SECRET, to=store.url)


async def collect(url: str, store: str, id_: str) -> None:
    """One attempt, without a broker."""
    async with Postgres(Faena("killed"), url) as pg:
        retrievals = pg.retrieval(secrets=SECRET, to=store)
        await retrievals._work(Wish(id_), Job("archives", id_, Spec(task="x")))


async def test_a_kill_at_any_step_ends_in_one_whole_file(
    retrievals: Retrievals, store: ObjectStore, database: str, tmp_path: Path
) -> None:
    deaths = 0
    for fatal in range(1, 100):
        period = {**YEAR, "start": date(2023, 1, fatal % 28 + 1), "end": date(2023 + fatal, 12, 31)}
        view = await retrievals.retrieve("jobs", tenant="org-1", **period)
        given = (killed_step.run, collect, fatal, database, store.url, view.id)
        if Forked(*given, log=tmp_path / "log").wait(60) == 0:
            break
        deaths += 1
        assert (await retrievals.look(view.id, tenant="org-1")).state in {"waiting", "ready"}
        await retrievals._work(Wish(view.id), Job("archives", view.id, Spec(task="x")))
        await check_file(retrievals, view.id)
        assert len(await keys_in(store, f"retrievals/{view.id}")) == 1
        assert not halves_in(tmp_path)
    assert deaths >= 9


class Died(BaseException):
    """As if the process were killed."""


async def test_files_of_all_attempts_of_a_request_that_failed_are_removed(
    retrievals: Retrievals, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is frozen while the second fails, then writes its file, and dies."""
    view = await retrievals.retrieve("jobs", tenant="org-1", **YEAR)
    attempt = (Wish(view.id), Job("archives", view.id, Spec(task="x")))
    objects = {key: (tmp_path / "archives" / key) for key in await keys_in(store)}
    blobs = {key: path.read_bytes() for key, path in objects.items()}
    write = type(store).write

    async def frozen(self: ObjectStore, key: str, chunks: AsyncIterator[bytes]) -> None:
        monkeypatch.setattr(type(store), "write", write)
        for path in objects.values():
            path.write_bytes(b"damaged")
        with pytest.raises(Discard):
            await retrievals._work(*attempt)
        for one, path in objects.items():
            path.write_bytes(blobs[one])
        await write(self, key, chunks)
        raise Died

    monkeypatch.setattr(type(store), "write", frozen)
    with pytest.raises(Died):
        await retrievals._work(*attempt)
    assert (await retrievals.look(view.id, tenant="org-1")).state == "failed"
    assert len(await keys_in(store, f"retrievals/{view.id}")) == 1
    await retrievals.sweep()
    assert await keys_in(store, "retrievals") == []


def halves_in(folder: Path) -> list[Path]:
    return list(folder.rglob("*.part"))


async def check_file(retrievals: Retrievals, id_: str) -> None:
    view = await retrievals.look(id_, tenant="org-1")
    assert (view.state, view.rows) == ("ready", 30)
    token, _ = await retrievals.link(id_, tenant="org-1")
    file = await retrievals.open(token)
    blob = b"".join([chunk async for chunk in file.chunks()])
    assert gzip.decompress(blob).count(b"\n") == 30
