"""`direct_url` must lead to the database that `url` leads to, and is told of by its own name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from faena import Faena
from faena.cli import main
from faena.errors import ConfigError, StoreRejected, StoreUnavailable
from faena.pg import Archive, Postgres
from faena.pg.direct import direct_view
from tests._support.postgres import Cluster

NOWHERE = "postgresql://nobody:secret@127.0.0.1:1/x"
cli_app = Faena("direct", "redis://127.0.0.1:1/0")
cli_pg = Postgres(cli_app)


@pytest.fixture
def copy(cluster: Cluster, database: str) -> Iterator[str]:
    """A copy of the test's database, as `createdb -T` makes it."""
    name = database.partition("/test_")[2].partition("?")[0]
    yield cluster.create(f"copy_{name}", f"test_{name}")
    cluster.drop(f"copy_{name}")


def execute(url: str, text: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(text.encode())
        return found.fetchall() if found.description else []


@pytest.fixture
async def misled(app: Faena, database: str, cluster: Cluster) -> AsyncIterator[Postgres]:
    """Its tables are partitioned, and its sessions go to a copy of them."""
    execute(
        database,
        "CREATE TABLE jobs (id int, created_at date, PRIMARY KEY (id, created_at))"
        " PARTITION BY RANGE (created_at);"
        "CREATE TABLE jobs_y2020m01 PARTITION OF jobs FOR VALUES FROM ('2020-01-01') TO"
        " ('2020-02-01'); INSERT INTO jobs VALUES (1, '2020-01-05')",
    )
    name = database.partition("/test_")[2].partition("?")[0]
    copied = cluster.create(f"staging_{name}", f"test_{name}")
    async with Postgres(app, database, direct_url=copied) as pg:
        yield pg
    cluster.drop(f"staging_{name}")


async def test_a_session_in_a_copy_of_the_database_is_refused(misled: Postgres) -> None:
    table = misled.partitioned("jobs", every="month")
    with pytest.raises(StoreRejected, match=r"same database as url, got 'postgresql:///staging_"):
        await table.detach("jobs_y2020m01")
    copied = await misled.direct_url()
    assert execute(copied, "SELECT count(*) FROM jobs") == [(1,)]


async def test_no_partition_leaves_while_sessions_go_to_a_copy(
    misled: Postgres, tmp_path: Any
) -> None:
    misled.retain("jobs", keep="1y", then=Archive(to=tmp_path))
    (done,) = await misled.archive()
    assert "another database than url" in (done.problem or "")
    for url in (await misled.url(), await misled.direct_url()):
        assert execute(url, "SELECT count(*) FROM jobs") == [(1,)]


async def test_the_same_database_by_another_way_is_the_same(
    app: Faena, database: str, cluster: Cluster
) -> None:
    name = database.rpartition("/")[2].partition("?")[0]
    direct = cluster.tcp_url(f"test_{database.partition('/test_')[2].partition('?')[0]}")
    async with Postgres(app, database, direct_url=direct, pool=1) as pg:
        async with pg.autocommit() as connection:
            await connection.execute("CHECKPOINT")
        view = await direct_view(pg)
    assert (view and view.is_usable, bool(name)) == (True, True)


async def test_one_that_cannot_be_reached_is_told_by_its_name(app: Faena, database: str) -> None:
    async with Postgres(app, database, direct_url=NOWHERE) as pg:
        with pytest.raises(StoreUnavailable, match=r"direct_url '\S+127.0.0.1:1/x' cannot"):
            async with pg.autocommit():
                pass
        view = await direct_view(pg)
    assert view is not None
    assert "FAENA_PG_DIRECT_URL" in (view.reason or "")
    assert "secret" not in (view.reason or "")


async def test_a_direct_url_that_is_none_is_refused_as_url_is(
    app: Faena, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAENA_PG_DIRECT_URL", "nonsense")
    async with Postgres(app, database) as pg:
        with pytest.raises(ConfigError, match="FAENA_PG_DIRECT_URL must be a URL such as"):
            async with pg.session():
                pass


@pytest.mark.parametrize("as_json", [True, False])
def test_the_status_tells_of_one_that_does_not_work(
    database: str,
    copy: str,
    as_json: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli_pg, "_url", database)
    words = ["pg", "status", f"{__name__}:cli_app", *(["--json"] if as_json else [])]
    told: list[str] = []
    for direct in (NOWHERE, copy, database):
        monkeypatch.setenv("FAENA_PG_DIRECT_URL", direct)
        assert main(words) == 0
        out = capsys.readouterr().out
        told.append(str(json.loads(out)["direct"]["reason"]) if as_json else " ".join(out.split()))
    assert "cannot be reached" in told[0]
    assert "another database than url" in told[1]
    assert told[2] == "None" if as_json else "direct_url works" in told[2]
