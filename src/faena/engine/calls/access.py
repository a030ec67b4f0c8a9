"""The calls of the dashboard: accounts, sessions, tries to sign in, and the audit trail.

They live in a shard of their own. Secrets never come here: of passwords only hashes, of tokens,
sessions and links only digests.
"""

from __future__ import annotations

from typing import Final

from faena.engine.engine import Engine

SHARD: Final = "@access"
"""No queue can have this name."""


class AccountChanged(Exception):
    """Another one has changed the account meanwhile."""


class LastOwner(Exception):
    """Without this account, no owner could sign in."""


class AccessCalls:
    """The calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def accounts(self) -> dict[str, bytes]:
        """All users and tokens, packed."""
        flat = await self._engine.command("HGETALL", SHARD, "accounts")
        return {key.decode(): one for key, one in zip(flat[::2], flat[1::2], strict=True)}

    async def account(self, name: str) -> bytes | None:
        """One of them."""
        found: bytes | None = await self._engine.command("HGET", SHARD, "accounts", name)
        return found

    async def change_account(self, name: str, expected: bytes, account: bytes) -> None:
        """Make it (expected is empty), change it, or remove it (account is empty)."""
        named = {"name": name, "expected": expected, "account": account}
        reply = await self._engine.ask("change_account", SHARD, **named)
        if reply == b"CHANGED":
            raise AccountChanged
        if reply == b"LAST_OWNER":
            raise LastOwner

    async def keep_session(self, digest: str, packed: bytes, lasting_ms: int) -> None:
        """Begin a session, or let it last longer."""
        await self._engine.command("SET", SHARD, f"session:{digest}", packed, "PX", lasting_ms)

    async def session(self, digest: str) -> bytes | None:
        """The session of a cookie; None if it has ended."""
        found: bytes | None = await self._engine.command("GET", SHARD, f"session:{digest}")
        return found

    async def end_session(self, digest: str) -> None:
        """End it, if it is there."""
        await self._engine.command("DEL", SHARD, f"session:{digest}")

    async def keep_link(self, digest: str, packed: bytes, lasting_ms: int) -> None:
        """Make a link that lets one person in, once."""
        await self._engine.command("SET", SHARD, f"link:{digest}", packed, "PX", lasting_ms)

    async def link(self, digest: str) -> bytes | None:
        """What a link gives, which stays; None if it was used, or is too old."""
        found: bytes | None = await self._engine.command("GET", SHARD, f"link:{digest}")
        return found

    async def take_link(self, digest: str) -> bytes | None:
        """What the link gives, to the first one who asks; a lost answer uses the link up."""
        found: bytes | None = await self._engine.command("GETDEL", SHARD, f"link:{digest}")
        return found

    async def count_try(self, name: str, lasting_ms: int) -> int:
        """Count a failed try, and say how many there were within this time of the first one."""
        named = {"name": name, "lasting_ms": lasting_ms}
        return int(await self._engine.ask("count_try", SHARD, **named))

    async def tries(self, name: str) -> int:
        """How many there were."""
        return int(await self._engine.command("GET", SHARD, f"tries:{name}") or 0)

    async def forget_tries(self, name: str) -> None:
        """After one that was right."""
        await self._engine.command("DEL", SHARD, f"tries:{name}")

    async def begin_record(self, ident: str, packed: bytes) -> None:
        """Record that a change is about to be made."""
        await self._engine.command("HSET", SHARD, "trail_open", ident, packed)

    async def end_record(self, ident: str, packed: bytes) -> None:
        """Record how it ended."""
        named = {"id": ident, "record": packed}
        await self._engine.ask("end_record", SHARD, **named)

    async def open_records(self) -> list[bytes]:
        """Changes under way, and those whose process died."""
        found: list[bytes] = await self._engine.command("HVALS", SHARD, "trail_open")
        return found

    async def records(self, before: str, number: int, since: str = "-") -> list[tuple[str, bytes]]:
        """Ended changes before a cursor, the newest first; before "+" are the last ones."""
        first = "+" if before == "+" else f"({before}"
        span = (first, since, "COUNT", number)
        found = await self._engine.command("XREVRANGE", SHARD, "trail", *span)
        return [(cursor.decode(), fields[1]) for cursor, fields in found]

    async def views(self, whose: str) -> dict[str, str]:
        """Saved views of a user, or of all: name → query."""
        flat = await self._engine.command("HGETALL", SHARD, f"views:{whose}")
        return {key.decode(): one.decode() for key, one in zip(flat[::2], flat[1::2], strict=True)}

    async def keep_view(self, whose: str, name: str, query: str, most: int) -> bool:
        """Keep a view, or remove it (query is empty); False if there are `most` already."""
        named = {"whose": whose, "name": name, "query": query, "most": most}
        return bool(await self._engine.ask("keep_view", SHARD, **named) == b"OK")

    async def keep_place(self, token: str, packed: bytes, lasting_ms: int) -> None:
        """Keep how far a search has come, for a while."""
        await self._engine.command("SET", SHARD, f"place:{token}", packed, "PX", lasting_ms)

    async def place(self, token: str) -> bytes | None:
        """How far it has come; None if that was forgotten."""
        found: bytes | None = await self._engine.command("GET", SHARD, f"place:{token}")
        return found
