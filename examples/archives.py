"""Rows are archived, a tenant gets its own back over HTTP, and all it has is erased.

    .venv/bin/python -m examples.archives

Needs no server: Valkey and PostgreSQL are embedded, in a directory that is gone afterwards.
"""

from __future__ import annotations

import asyncio
import gzip
import tempfile
from contextlib import suppress
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from faena import Faena
from faena.contrib.archives import archives_app
from faena.pg import Archive, Postgres
from faena.pg.migration import migrate

VISITS = """
    CREATE TABLE visits (id int PRIMARY KEY, org text, at timestamptz NOT NULL);
    INSERT INTO visits SELECT n, 'org-' || n % 2, now() - n * interval '1 day'
        FROM generate_series(1, 900) n
"""
TENANTS = {"Bearer key-of-org-1": "org-1"}


def tenant_of(request: Request) -> str | None:
    """The tenant is what the credential says, never a parameter."""
    return TENANTS.get(request.headers.get("authorization", ""))


async def until(state: str, look: Any) -> dict[str, Any]:
    while (told := await look())["state"] != state:  # noqa: ASYNC110 - another process may do it
        await asyncio.sleep(0.05)
    return told


async def main(directory: str) -> None:
    app = Faena("archives", directory=directory)
    pg = Postgres(app)
    pg.retain("visits", by="at", keep="1y", tenant="org", then=Archive(), every="month")
    pg.retrieval(secrets="a secret of at least 32 characters")
    pg.erasure()
    web = Starlette(routes=[Mount("/api", archives_app(pg, tenant_of=tenant_of))])
    who = {"Authorization": "Bearer key-of-org-1"}
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(web), base_url="http://shop", headers=who
    )
    async with app, pg, client:
        await migrate(pg)
        async with pg.transaction() as connection:
            await connection.execute(VISITS.encode())
        (done,) = await pg.archive()
        print(f"archived: {done.rows} rows in {done.objects} objects")
        worker = asyncio.create_task(app.run_worker())

        async def look() -> Any:
            query = {"table": "visits", "from": "2000-01-01", "to": "2099-12-31"}
            return (await client.get("/api/archives", params=query)).json()

        told = await until("ready", look)
        file = await client.get(told["link"])
        print(f"retrieved: {gzip.decompress(file.content).count(b'org-1')} rows of org-1")

        asked = await pg.erase(tenant="org-1", by="ana", reason="asked by letter")

        async def progress() -> Any:
            return (await pg.erasures.look(asked.id)).to_dict()

        told = await until("done", progress)
        print(f"erased: {told['erased']['table public.visits']} rows, and all archives of org-1")
        print(f"left of org-1: {(await pg.erasures.plan('org-1')).total}")
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(directory))
