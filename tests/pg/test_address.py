"""Addresses of PostgreSQL: what is refused, and that no error tells a password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.errors import ConfigError
from faena.pg import Postgres
from faena.pg.address import without_secrets

SECRET = [
    "postgresql+psycopg://u:secret@h/db",
    "mysql://u:secret@h/db",
    "host=h password=secret",
    "postgresql://u:secret%zz@h/db",
    "postgresql://u:secret%ret@h/db",
    "postgresql://u:sec/secret@h:x/db?password=secret%zz",
    "u:secret@h",
    "secret word",
]


@pytest.mark.parametrize("url", SECRET)
@pytest.mark.parametrize("name", ["url", "direct_url", "replica_url"])
def test_an_argument_that_is_refused_shows_no_password(app: Faena, name: str, url: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name} must be a URL") as caught:
        Postgres(app, **{name: url})  # pyright: ignore[reportArgumentType]
    error = caught.value
    assert "secret" not in f"{error} {error.value} {error.__cause__}"
    assert error.__suppress_context__ or error.__context__ is None


def test_a_variable_that_is_empty_counts_as_not_set(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAENA_PG_DIRECT_URL", "")
    monkeypatch.setenv("FAENA_PG_REPLICA_URL", "")
    pg = Postgres(app, "postgresql://h/db")
    assert (pg.has_direct_url(), pg.replica.url) == (False, None)


@pytest.mark.parametrize("url", SECRET)
async def test_a_variable_that_is_refused_shows_no_password(
    app: Faena, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pg = Postgres(app)
    for name in ("FAENA_PG_URL", "FAENA_PG_DIRECT_URL", "FAENA_PG_REPLICA_URL"):
        monkeypatch.setenv(name, url)
    for call in (pg.url, pg.direct_url, lambda: _look(pg)):
        with pytest.raises(ConfigError, match=r"^FAENA_PG_\w+ must be a URL") as caught:
            await call()
        assert "secret" not in str(caught.value)


async def _look(pg: Postgres) -> Any:
    return pg.replica


def test_a_url_with_a_driver_is_told_how_to_write_it(app: Faena) -> None:
    with pytest.raises(ConfigError, match=r"got 'postgresql\+psycopg://h/db': write postgresql://"):
        Postgres(app, "postgresql+psycopg://u:p@h/db")


def test_what_is_shown_of_a_url_is_where_it_leads() -> None:
    url = "postgresql://ana:p@ss@db.example:5432/shop?sslpassword=x"
    assert without_secrets(url) == "'postgresql://db.example:5432/shop'"
    assert without_secrets("nonsense") == "'nonsense'"
    assert without_secrets(7) == "7"


@pytest.mark.parametrize("where", ["production", "staging"])
async def test_in_production_no_server_of_its_own_is_started(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAENA_PG_URL", raising=False)
    monkeypatch.setenv("FAENA_ENV", where)
    async with Postgres(Faena("shop", directory=tmp_path / ".faena")) as pg:
        with pytest.raises(ConfigError, match=rf"^with FAENA_ENV={where} .* set FAENA_PG_URL"):
            await pg.url()
    assert not (tmp_path / ".faena").exists()
