"""Archives as an archiver leaves them, made by hand: objects, manifests and catalogue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from faena.pg import Postgres
from faena.pg.archive.catalogue import add_entries, change_state
from faena.pg.archive.content import Packed, Packer
from faena.pg.archive.manifest import Column, Manifest, manifest_key, new_key, schema_digest
from faena.pg.archive.store import ObjectStore

COLUMNS = (Column("id", "text"), Column("at", "timestamp with time zone"))


def row(number: int, at: str, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "at": at, **more}


async def archive(
    pg: Postgres,
    store: ObjectStore,
    tenant: str | None,
    rows: Sequence[dict[str, Any]],
    *,
    table: str = "public.jobs",
    tenant_column: str | None = "org",
) -> str:
    """One object with these rows, which are in order; returns its key."""
    packed = pack(rows)
    start = datetime.fromisoformat(rows[0]["at"][:10]).replace(tzinfo=UTC)
    key = new_key(table, tenant, start)
    made = Manifest(
        table=table,
        columns=COLUMNS,
        schema_digest=schema_digest(COLUMNS),
        by="at",
        start=start,
        end=start + timedelta(days=1),
        first=rows[0]["at"],
        last=rows[-1]["at"],
        tenant_column=tenant_column,
        tenant=tenant,
        key=key,
        rows=packed.rows,
        raw_bytes=packed.raw_bytes,
        size=len(packed.blob),
        sha256=packed.sha256,
        digest=str(packed.digest),
        exported_at=start,
    )
    async with pg.transaction() as connection:
        ids = await add_entries(connection, store.url, [(made, [tenant])], ["org"])
    await store.put(key, packed.blob)
    await store.put(manifest_key(key), made.encode())
    async with pg.transaction() as connection:
        await change_state(connection, ids, "archived", of=["writing"])
    return key


def pack(rows: Sequence[dict[str, Any]]) -> Packed:
    packer = Packer()
    packer.add([json.dumps(one).encode() for one in rows])
    return packer.finish()


async def keys_in(store: ObjectStore, prefix: str = "") -> list[str]:
    return sorted([one.key async for one in store.list(prefix)])
