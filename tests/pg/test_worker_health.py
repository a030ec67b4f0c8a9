"""`/health` of a worker tells of the database that its app uses."""

from __future__ import annotations

from urllib.parse import urlsplit

from faena import Faena
from faena.errors import StoreUnavailable
from faena.pg import Postgres
from tests._support.eventually import eventually
from tests._support.postgres import Cluster
from tests._support.probe import answers, get
from tests._support.proxy import Proxy
from tests._support.valkey import free_port
from tests._support.working import running


async def test_a_database_that_falls_silent_is_told_and_forgotten_when_it_answers_again(
    app: Faena, cluster: Cluster, database: str
) -> None:
    app.queue("mail")
    port = free_port()
    async with Proxy(cluster.port) as proxy:
        url = f"postgresql://postgres@127.0.0.1:{proxy.port}{urlsplit(database).path}"
        async with Postgres(app, url), running(app, serve=str(port)):
            await eventually(lambda: answers(port, "/health", 200))
            assert (await get(port, "/health")).document["database"] == "ok"
            proxy.silence()
            await eventually(lambda: answers(port, "/health", 503))
            told = await get(port, "/health")
            assert (told.document["status"], told.document["database"]) == (
                *("degraded", "unreachable"),
            )
            assert told.document["redis"] == told.document["queues"] == "ok"
            assert "the database does not answer" in told.problems
            assert (await get(port, "/health/redis")).status == 200
            proxy.speak(forgets=True)
            await eventually(lambda: answers(port, "/health", 200))


async def test_a_pool_that_is_busy_is_no_database_that_is_out(app: Faena, database: str) -> None:
    async with Postgres(app, database, pool=1, patience="1s") as pg, pg.transaction():
        await pg.check()


async def test_a_server_of_the_programs_own_is_told_by_its_name(app: Faena) -> None:
    async def check() -> None:
        raise StoreUnavailable("no shard is there", op="search")

    app.queue("mail")
    app.add_server("search", check)
    port = free_port()
    async with running(app, serve=str(port)):
        await eventually(lambda: answers(port, "/health", 503))
        await eventually(lambda: is_told(port))


async def is_told(port: int) -> bool:
    told = (await get(port, "/health")).document
    return told.get("search") == "unreachable" and "database" not in told
