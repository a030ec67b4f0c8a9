"""Erasures that are interrupted, and archivers that are at work at the same time."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.errors import StoreRejected
from faena.job import Job, Spec
from faena.outcomes import Snooze
from faena.pg import Archive, History, Postgres
from faena.pg.archive.archiver import Archiver
from faena.pg.archive.fence import Fence
from faena.pg.erasure.archived import Archived
from faena.pg.erasure.erasures import Order
from tests._support import archive_process, killed_step
from tests._support.archive_process import NOW, retain
from tests._support.archived import keys_in
from tests._support.eventually import eventually
from tests._support.forked import Forked
from tests._support.object_server import running
from tests._support.two_tenants import World
from tests._support.valkey import Server

ASKED: dict[str, Any] = {"by": "ana", "reason": "asked by letter"}
SHORT = "200ms"
PLACES = ("visits", "pings", "archives", "retrievals", "outbox", "effects", "jobs", "history")


@pytest.fixture
async def pg(app: Faena, database: str) -> AsyncIterator[Postgres]:
    async with Postgres(app, database, relay=False, history=History()) as pg:
        yield pg


async def carry_out(urls: tuple[str, str], namespace: str, folder: str, id_: str) -> None:
    """One attempt of the job."""
    app = Faena("shop", urls[0], namespace=namespace)
    async with app, Postgres(app, urls[1], relay=False, history=History()) as pg:
        world = World(app, pg, Path(folder), SHORT)
        await world.erasures._work(Order(id_), Job("erasures", id_, Spec(task="x")))


async def test_an_erasure_that_is_killed_at_many_steps_ends_with_exact_counts(
    app: Faena, pg: Postgres, valkey: Server, namespace: str, database: str, tmp_path: Path
) -> None:
    world = World(app, pg, tmp_path / "archives", SHORT)
    await world.fill()
    before, other = await world.held("a"), await world.held("b")
    asked = await pg.erase(tenant="a", **ASKED)
    stride = 1 if os.environ.get("FAENA_SEARCH") == "full" else 4
    given = ((valkey.url, database), namespace, str(world.folder), asked.id)
    deaths, fatal, code = 0, 1, -9
    while code != 0:
        log = tmp_path / f"log-{fatal}"
        code = Forked(killed_step.run, carry_out, fatal, *given, log=log).wait(60)
        assert code in {0, -9} or "Snooze" in log.read_text(), log.read_text()[-2000:]
        deaths, fatal = deaths + (code == -9), fatal + stride
    done = await world.erasures.look(asked.id)
    assert done.state == "done"
    assert deaths >= 20
    left = await world.held("a")
    assert {place: left[place] for place in PLACES if left[place]} == {}
    assert not any((world.folder / key).exists() for key in before["files"])
    assert await world.held("b") == other
    counts = {place: len(before[place]) for place in PLACES}
    for table in ("visits", "pings"):
        assert done.erased[f"table public.{table}"] == counts[table]
    objects = sum(done.erased[f"archives public.{one}"] for one in ("visits", "pings"))
    assert objects == counts["archives"]
    for place in ("retrievals", "outbox", "effects"):
        assert done.erased[place] == counts[place]


# -- an archiver at the same time -----------------------------------------------------------------

VISITS = """
    CREATE TABLE visits (id int PRIMARY KEY, org text, at timestamptz NOT NULL, v int);
    CREATE TABLE stats (org text PRIMARY KEY, n int, v int);
    INSERT INTO visits SELECT n, 'o' || n % 3,
        '2025-03-01 00:00+00'::timestamptz - n * interval '4 hour', n
      FROM generate_series(1, 90) n;
"""

PINGS = """
    CREATE TABLE pings (id int, org text, at timestamptz, PRIMARY KEY (id, at))
        PARTITION BY RANGE (at);
    CREATE TABLE pings_1 PARTITION OF pings
        FOR VALUES FROM ('2025-02-01 00:00+00') TO ('2025-02-08 00:00+00');
    INSERT INTO pings SELECT n, 'o' || n % 3, '2025-02-01 00:00+00'::timestamptz + n *
        interval '1 hour' FROM generate_series(1, 90) n;
"""


@pytest.fixture
async def visits(pg: Postgres, tmp_path: Path) -> Postgres:
    async with pg.transaction() as connection:
        await connection.execute(VISITS.encode())
    retain(pg, "archive", tmp_path / "archives")
    pg.erasure(wait="50ms", lease=archive_process.LEASE)
    return pg


async def numbers(pg: Postgres) -> list[Any]:
    """Rows and archived rows of each tenant."""
    words = (
        "SELECT org, (SELECT count(*) FROM visits v WHERE v.org = o.org), (SELECT"
        " coalesce(sum(rows), 0)::int FROM faena.archives a WHERE a.tenant = o.org AND state ="
        " 'archived') FROM (VALUES ('o0'), ('o1'), ('o2')) AS o(org) ORDER BY 1"
    )
    async with pg.transaction() as connection:
        return await (await connection.execute(words)).fetchall()


async def attempt(pg: Postgres, id_: str) -> bool:
    """One attempt of the job; whether it was done."""
    try:
        await pg.erasures._work(Order(id_), Job("erasures", id_, Spec(task="x")))
    except Snooze:
        return False
    return True


@pytest.mark.parametrize("step", [8, 14, 20, 26])
async def test_an_archiver_that_is_frozen_while_it_exports_brings_nothing_back(
    visits: Postgres, database: str, tmp_path: Path, step: int
) -> None:
    """It wakes up when the erasure is done, and may store what it had read before."""
    folder = tmp_path / "archives"
    given = (database, "archive", str(folder), step, signal.SIGSTOP)
    frozen = Forked(archive_process.run, *given, log=tmp_path / "log")
    await eventually(lambda: _is_stopped(frozen.pid))
    asked = await visits.erase(tenant="o1", **ASKED)
    await eventually(lambda: attempt(visits, asked.id))
    assert _objects(folder) == 0
    frozen.send(signal.SIGCONT)
    assert frozen.wait(60) in {0, 1}
    (done,) = await visits.archive(at=NOW)
    assert done.problem is None
    assert [row for row in await numbers(visits) if row[0] == "o1"] == [("o1", 0, 0)]
    assert {org: there + old for org, there, old in await numbers(visits)} == {
        "o0": 30, "o1": 0, "o2": 30,
    }  # fmt: skip
    await visits.erasures.sweep()
    assert _objects(folder) == 0
    assert (await visits.erasures.plan("o1")).total == 0


async def test_rows_of_a_partition_that_a_dead_archiver_has_detached_go(
    pg: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in no table any more, and the program has not declared that there are partitions."""
    async with pg.transaction() as connection:
        await connection.execute(PINGS.encode())
    pg.retain("pings", by="at", keep="2d", tenant="org", then=Archive(to=tmp_path))
    pg.erasure(wait="50ms", lease="1s")

    async def died(*_: Any) -> int:
        raise StoreRejected("it died", op="archive")

    with monkeypatch.context() as patched:
        patched.setattr(Archiver, "drop", died)
        assert [one.problem for one in await pg.archive(at=NOW)] == ["it died"]
    asked = await pg.erase(tenant="o1", **ASKED)
    assert await attempt(pg, asked.id)
    done = await pg.erasures.look(asked.id)
    assert done.erased == {"table public.pings": 30, "archives public.pings": 1}
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT org, count(*) FROM pings_1 GROUP BY 1 ORDER BY 1")
        assert await found.fetchall() == [("o0", 30), ("o2", 30)]
    assert [one.problem for one in await pg.archive(at=NOW)] == [None]
    assert [one.tenant for one in await pg.archives("pings")] == ["o0", "o2"]


async def test_an_archiver_that_is_alive_is_waited_for(visits: Postgres) -> None:
    fence = Fence(visits, "public.visits", 1)
    await fence.take()
    asked = await visits.erase(tenant="o1", **ASKED)
    async with fence.held():
        assert not await attempt(visits, asked.id)
        told = await visits.erasures.look(asked.id)
        assert "another process archives public.visits now" in (told.problem or "")
        assert (await numbers(visits))[1] == ("o1", 30, 0)
    await fence.end(None)
    assert await attempt(visits, asked.id)
    assert (await numbers(visits))[1] == ("o1", 0, 0)


async def test_an_erasure_that_was_overtaken_deletes_nothing(
    visits: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was frozen, and wakes up when an archiver has the table."""
    take = Fence.take

    async def overtaken(self: Fence) -> None:
        await take(self)
        async with visits.transaction() as connection:
            await connection.execute("UPDATE faena.archive_runs SET token = gen_random_uuid()")

    asked = await visits.erase(tenant="o1", **ASKED)
    with monkeypatch.context() as patched:
        patched.setattr(Fence, "take", overtaken)
        assert not await attempt(visits, asked.id)
    told = await visits.erasures.look(asked.id)
    assert "has taken over the archives of public.visits" in (told.problem or "")
    assert (await numbers(visits))[1] == ("o1", 30, 0)
    async with visits.transaction() as connection:
        await connection.execute("UPDATE faena.archive_runs SET ended_at = now()")
    assert await attempt(visits, asked.id)
    assert (await numbers(visits))[1] == ("o1", 0, 0)


async def test_an_erasure_that_was_overtaken_after_the_rows_removes_no_object(
    visits: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [one.problem for one in await visits.archive(at=NOW)] == [None]
    before, erase_rows = _objects(tmp_path / "archives"), Archived._erase_rows

    async def overtaken(self: Archived, *given: Any) -> None:
        await erase_rows(self, *given)
        async with visits.transaction() as connection:
            await connection.execute("UPDATE faena.archive_runs SET token = gen_random_uuid()")

    asked = await visits.erase(tenant="o1", **ASKED)
    monkeypatch.setattr(Archived, "_erase_rows", overtaken)
    assert not await attempt(visits, asked.id)
    assert _objects(tmp_path / "archives") == before > 0


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _objects(folder: Path) -> int:
    return len(list((folder / "public.visits" / "t-o1").rglob("*")))


# -- a bucket -------------------------------------------------------------------------------------


async def test_objects_in_a_bucket_go(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute(VISITS.encode())
    with running() as server:
        bucket = server.bucket("erased")
        archive = Archive(to=bucket, rows=20)
        pg.retain("visits", by="at", keep="2d", tenant="org", then=archive, every="week")
        erasures = pg.erasure(wait="50ms")
        await pg.archive(at=NOW)
        store = pg.stores.of(archive)
        whole = await keys_in(store)
        asked = await pg.erase(tenant="o1", **ASKED)
        assert await attempt(pg, asked.id)
        left = await keys_in(store)
        assert left == [key for key in whole if "/t-o1/" not in key]
        assert len(left) < len(whole)
        await erasures.sweep()
