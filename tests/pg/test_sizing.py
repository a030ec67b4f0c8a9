"""What is advised about connections, and that it is about the right numbers."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from faena import Faena
from faena.errors import ConfigError
from faena.pg import ConnectionsView, Postgres
from faena.pg.sizing import advise, connections

PLAIN = ConnectionsView(
    max_connections=100,
    reserved=3,
    in_use=5,
    own=5,
    pool=10,
    processes=8,
    is_pooled=False,
    has_direct_url=False,
    advice=(),
)


def advised(cores: int | None = None, **changes: object) -> list[str]:
    return advise(msgspec.structs.replace(PLAIN, **changes), cores)


def test_pools_and_sessions_of_all_processes_must_fit_into_what_is_not_reserved() -> None:
    assert advised() == ["8 processes x (pool 10 + 1) = 88 connections fit into 92"]
    assert advised(processes=9) == [
        (
            "9 processes x (pool 10 + 1) = 99 connections do not fit into 92: set pool=9, or put "
            "PgBouncer in between"
        )
    ]
    assert advised(max_connections=50, processes=5) == [
        (
            "5 processes x (pool 10 + 1) = 55 connections do not fit into 42: set pool=7, or raise "
            "max_connections to 63"
        )
    ]
    assert "run fewer processes" in advised(processes=80)[0]


def test_a_pool_that_is_advised_fits() -> None:
    for processes, pool in itertools.product(range(1, 60), (1, 5, 10)):
        (told,) = advised(processes=processes, pool=pool)
        assert ("do not fit" in told) is (processes * (pool + 1) > 92)
        if "set pool=" in told:
            lower = int(told.partition("set pool=")[2].partition(",")[0])
            assert 1 <= lower < pool
            assert " fit into" in advised(processes=processes, pool=lower)[0]


def test_connections_of_others_count() -> None:
    assert advised(in_use=30, own=20)[1:] == [
        "other programs have 10 connections, which leaves this app 82 of the 88 that it may open"
    ]
    assert advised(in_use=93, own=88)[1:] == [
        "93 of 100 connections are in use: the next program may be refused"
    ]


def test_behind_a_pooler_the_server_needs_few_connections_by_its_cores() -> None:
    first, second = advised(is_pooled=True, processes=20, cores=4)
    assert first == (
        "a pooler is in between: default_pool_size 9 keeps the server busy, and max_client_conn "
        "must be 200 at least"
    )
    assert second.startswith("set direct_url past the pooler")
    assert len(advised(is_pooled=True, has_direct_url=True)) == 1
    assert "100 processes listen" in advised(is_pooled=True, has_direct_url=True, processes=100)[1]
    assert "2 x cores + 1" in advised(is_pooled=True)[0]


async def test_the_numbers_are_those_of_the_server(app: Faena, database: str) -> None:
    async with Postgres(app, database, pool=7, relay=False) as pg:
        view = await connections(pg, processes=3)
        assert (view.max_connections, view.pool, view.processes) == (300, 7, 3)
        assert 1 <= view.own <= view.in_use
        assert (view.is_pooled, view.has_direct_url) == (False, False)
        assert view.advice[0].startswith("3 processes x (pool 7 + 1) = 24 connections fit")
        with pytest.raises(ConfigError, match="processes must be"):
            await connections(pg, processes=0)
