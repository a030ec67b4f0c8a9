"""Applies what a device did without a network, each operation once, in one transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid5

from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from apps.campotech.messages.sync import Operation, SyncOffline
from apps.campotech.sync.entity import KINDS, PHOTO, Kind, Refused, plain, read_fields
from apps.campotech.sync.record import Change, Record, Stamp, apply
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_REMINDED_OF: Final = frozenset({"scheduled_date", "customer_id", "status"})
_KNOWN: Final = """
    SELECT result FROM campotech.offline_operations
    WHERE organization_id = %s AND device_id = %s AND digest = %s
"""
_NOTE: Final = """
    INSERT INTO campotech.offline_operations
        (organization_id, device_id, digest, entity_type, local_id, server_id, result, problem)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_NAMED: Final = {
    "customer_id": "SELECT 1 FROM campotech.customers WHERE id = %s AND organization_id = %s",
    "assigned_to": "SELECT 1 FROM campotech.users WHERE id = %s AND organization_id = %s",
}
_AUDIT: Final = """
    INSERT INTO campotech.audit_logs (organization_id, subject, action, detail)
    VALUES (%s, %s, 'offline conflict', %s)
"""


class Applied(NamedTuple):
    """What became of one operation."""

    local_id: str
    server_id: str
    result: str
    problem: str | None = None


class Sync:
    """The queue `sync.offline`."""

    def __init__(self, system: System) -> None:
        self._system = system
        queue = system.queues["sync.offline"]
        self.apply = queue.task(name="apply")(system.pg.effect(self._apply))

    async def _apply(self, transaction: Connection, message: SyncOffline) -> list[Applied]:
        """Apply the operations of one entity, in the order in which the device made them."""
        done = [await _once(transaction, message, one) for one in message.operations]
        for job in _moved(message.operations, done):
            await self._system.reminders.plan(transaction, message.org_id, job)
        return done


def _moved(operations: Sequence[Operation], done: Sequence[Applied]) -> list[UUID]:
    """Jobs whose reminders may have to change; also where a part of the change was superseded."""
    found = {
        UUID(result.server_id): None
        for one, result in zip(operations, done, strict=True)
        if one.entity_type == "job"
        and result.result in ("applied", "merged")
        and _REMINDED_OF & one.data.keys()
    }
    return list(found)


async def _once(transaction: Connection, message: SyncOffline, one: Operation) -> Applied:
    """An operation that a device sends again, with other ones, is not applied again."""
    server_id = id_of(message, one)
    key = [message.org_id, message.device_id, _digest(one)]
    known = await (await transaction.execute(_KNOWN, key)).fetchone()
    if known is not None:
        return Applied(one.local_id, str(server_id), str(known[0]))
    problem = None
    try:
        result = await _write(transaction, message, one, server_id)
    except Refused as error:
        result, problem = "refused", str(error)
    noted = [*key, one.entity_type, one.local_id, server_id, result, problem]
    await transaction.execute(_NOTE, noted)
    return Applied(one.local_id, str(server_id), result, problem)


def id_of(message: SyncOffline, one: Operation) -> UUID:
    """The id of the entity on the server; one that a device made has always the same."""
    made = json.dumps([str(message.org_id), message.device_id, one.entity_type, one.local_id])
    return one.server_id or uuid5(NAMESPACE_OID, made)


async def _write(
    transaction: Connection, message: SyncOffline, one: Operation, server_id: UUID
) -> str:
    if one.type == "photo_upload" or one.entity_type == "photo":
        return await _store_photo(transaction, message, one, server_id)
    if one.type == "create" and one.server_id is not None:
        raise Refused("serverId: must not be given, the server makes it")
    kind = KINDS[one.entity_type]
    fields = read_fields(kind, one.data)
    if one.type == "status_change" and set(fields) != {"status"}:
        raise Refused("a change of status must name the status, and nothing else")
    await _check_named(transaction, message.org_id, fields)
    row = await _lock(transaction, kind, message.org_id, server_id)
    if row is None and one.type != "create":
        raise Refused(f"no {one.entity_type} {server_id} in this organisation")
    merged = apply(_record(row or {}, kind), _change(message, one, fields))
    await _save(transaction, kind, message.org_id, server_id, merged.record, is_new=row is None)
    if merged.result == "merged":
        detail = Jsonb({"device": message.device_id, "fields": sorted(fields)})
        await transaction.execute(_AUDIT, [message.org_id, str(server_id), detail])
    return merged.result


async def _check_named(
    transaction: Connection, organization: UUID, fields: Mapping[str, Any]
) -> None:
    """A job is about a customer and a user of its own organisation."""
    for name, query in _NAMED.items():
        named = fields.get(name)
        if named is None:
            continue
        if (
            await (await transaction.execute(query.encode(), [named, organization])).fetchone()
            is None
        ):
            raise Refused(f"{name}: must be one of this organisation")


async def _store_photo(
    transaction: Connection, message: SyncOffline, one: Operation, server_id: UUID
) -> str:
    fields = read_fields(PHOTO, one.data)
    if not fields["file_key"].startswith(f"{message.org_id}/") or ".." in fields["file_key"]:
        raise Refused("file_key: must be in the folder of the organisation")
    if await _lock(transaction, KINDS["job"], message.org_id, fields["job_id"]) is None:
        raise Refused(f"no job {fields['job_id']} in this organisation")
    await transaction.execute(
        "INSERT INTO campotech.photos (id, organization_id, job_id, file_key) "
        "VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        [server_id, message.org_id, fields["job_id"], fields["file_key"]],
    )
    return "applied"


async def _lock(
    transaction: Connection, kind: Kind, organization: UUID, server_id: UUID
) -> dict[str, Any] | None:
    query = sql.SQL("SELECT * FROM {} WHERE organization_id = %s AND id = %s FOR UPDATE")
    async with transaction.cursor(row_factory=dict_row) as cursor:
        table = sql.Identifier(*kind.table.split("."))
        await cursor.execute(query.format(table), [organization, server_id])
        return await cursor.fetchone()


def _record(row: dict[str, Any], kind: Kind) -> Record:
    stamps = {name: Stamp(*stamp) for name, stamp in row.get("stamps", {}).items()}
    fields = {name: plain(row[name]) for name in kind.fields.model_fields if name in row}
    return Record(fields, stamps, row.get("clock", {}))


def _change(message: SyncOffline, one: Operation, fields: dict[str, Any]) -> Change:
    at_us = int(one.client_timestamp.timestamp() * 1e6)
    said = {name: plain(value) for name, value in fields.items()}
    return Change(message.device_id, at_us, said, one.vector_clock or {})


async def _save(
    transaction: Connection,
    kind: Kind,
    organization: UUID,
    server_id: UUID,
    record: Record,
    *,
    is_new: bool,
) -> None:
    names = [name for name in record.stamps if name in kind.fields.model_fields]
    values: dict[str, Any] = {name: record.fields[name] for name in names}
    values["clock"], values["stamps"] = Jsonb(dict(record.clock)), Jsonb(dict(record.stamps))
    columns = [sql.Identifier(name) for name in values]
    table = sql.Identifier(*kind.table.split("."))
    if is_new:
        _need_name(kind, values)
        places = sql.SQL(", ").join([sql.Placeholder()] * (len(values) + 2))
        query = sql.SQL("INSERT INTO {} ({}, id, organization_id) VALUES ({})")
        made = query.format(table, sql.SQL(", ").join(columns), places)
    else:
        sets = sql.SQL(", ").join(sql.SQL("{} = %s").format(one) for one in columns)
        query = "UPDATE {} SET {}, updated_at = now() WHERE id = %s AND organization_id = %s"
        made = sql.SQL(query).format(table, sets)
    await transaction.execute(made, [*values.values(), server_id, organization])


def _need_name(kind: Kind, values: dict[str, Any]) -> None:
    if kind is KINDS["customer"] and not values.get("name"):
        raise Refused("name: field required")


def _digest(one: Operation) -> str:
    exact = json.dumps(one.model_dump(mode="json"), sort_keys=True).encode()
    return hashlib.blake2b(exact, digest_size=16).hexdigest()
