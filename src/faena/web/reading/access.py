"""Who has access, and what they have changed."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from faena.web.access.account import AccountView
from faena.web.access.role import Permission
from faena.web.answer import Refusal
from faena.web.audit import Record
from faena.web.reading.reading import USUAL, Limited, Many, Paged, Reading, Rows, Wanted

CURSOR: Final = re.compile(r"[1-9][0-9]{0,18}-[0-9]{1,19}")


class Before(msgspec.Struct, forbid_unknown_fields=True):
    """Which records are meant."""

    limit: Limited = USUAL
    cursor: str | None = None


async def _accounts(wanted: Wanted, kind: str) -> Rows:
    found = [one for one in await wanted.visit.site.gate.accounts.list() if one.kind == kind]
    return wanted.page(found, lambda one: f"{one.name} {one.id}", f"{kind}s")


async def _users(wanted: Wanted) -> Rows:
    return await _accounts(wanted, "user")


async def _tokens(wanted: Wanted) -> Rows:
    return await _accounts(wanted, "token")


async def _trail(wanted: Wanted) -> Rows:
    before = wanted.given.cursor
    if before is not None and not CURSOR.fullmatch(before):
        raise Refusal(422, "invalid", "cursor must come from the audit trail")
    page = await wanted.visit.site.trail.page(before or "+", wanted.given.limit)
    return Rows(page.records, page.cursor)


READINGS: Final = (
    Reading(
        name="users.list",
        path="/users",
        text="All users, without secrets.",
        answers=Many(AccountView),
        read=_users,
        arguments=Paged,
        needs=Permission.OWN,
    ),
    Reading(
        name="tokens.list",
        path="/tokens",
        text="All tokens, by the beginning of their digest.",
        answers=Many(AccountView),
        read=_tokens,
        arguments=Paged,
        needs=Permission.OWN,
    ),
    Reading(
        name="audit.list",
        path="/audit",
        text="Who has changed what, the newest first; changes under way come first.",
        answers=Many(Record),
        read=_trail,
        arguments=Before,
        needs=Permission.ADMINISTER,
    ),
)
