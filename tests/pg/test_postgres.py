"""Where an app's PostgreSQL is, and what its connections promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from faena import Faena
from faena.errors import ConfigError, StoreRejected, StoreUnavailable
from faena.pg import Postgres
from tests._support.valkey import free_port


async def test_a_transaction_commits_at_the_end_and_rolls_back_on_an_error(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute("CREATE TABLE kept (number int)")

    async def fail() -> None:
        async with pg.transaction() as connection:
            await connection.execute("INSERT INTO kept VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT count(*) FROM kept")
        assert await found.fetchone() == (0,)


async def test_an_absent_server_is_told_as_such(app: Faena) -> None:
    url = f"postgresql://postgres@127.0.0.1:{free_port()}/shop"
    async with Postgres(app, url, patience="500ms") as pg:
        with pytest.raises(StoreUnavailable, match="PostgreSQL cannot be reached"):
            async with pg.transaction():
                pass


async def test_what_the_server_refuses_is_told_in_its_words(pg: Postgres) -> None:
    with pytest.raises(StoreRejected, match=r'"nothing" does not exist.*faena pg migrate'):
        async with pg.transaction() as connection:
            await connection.execute("SELECT * FROM nothing")


@pytest.mark.parametrize("url", ["redis://x", "", 7, "shop"])
def test_a_url_of_something_else_is_refused(app: Faena, url: object) -> None:
    with pytest.raises(ConfigError, match="url must be a URL such as postgresql://"):
        Postgres(app, url)  # pyright: ignore[reportArgumentType]


async def test_without_a_url_it_has_a_server_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAENA_PG_URL", raising=False)
    app = Faena("shop", directory=tmp_path / ".faena")
    async with Postgres(app) as pg, pg.transaction() as connection:
        found = await connection.execute("SELECT current_setting('listen_addresses')")
        assert await found.fetchone() == ("",)
    assert not (tmp_path / ".faena" / "postgres" / "postmaster.pid").exists()
