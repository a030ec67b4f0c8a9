"""Saved views: searches with a name, of one user or of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from faena.engine.calls.access import AccessCalls
from faena.errors import arguments
from faena.values.names import check_words
from faena.web.access.role import Permission
from faena.web.answer import Refusal
from faena.web.audit import Record
from faena.web.finding import query_of
from faena.web.operation.operation import Asked, Done, Operation, Undo

MOST: Final = 50
ALL: Final = "all"


def own(name: str) -> str:
    """Under which name a user's own are kept."""
    return f"user:{name}"


class View(msgspec.Struct, forbid_unknown_fields=True):
    """A search with a name."""

    name: str
    q: str


class Named(msgspec.Struct, forbid_unknown_fields=True):
    """The name of one."""

    name: str


async def _kept(asked: Asked, whose: str, query: str) -> Done:
    with arguments():
        name = check_words("name", asked.given.name)
    calls = AccessCalls((await asked.app.runtime()).engine)
    before = (await calls.views(whose)).get(name)
    if not await calls.keep_view(whose, name, query, MOST):
        raise Refusal(409, "full", f"there are {MOST} views already: remove one of them first")
    return Done({"name": name}, before, query or None)


def _query(asked: Asked) -> str:
    """The query as it is kept; one that its author may not ask is refused."""
    query = query_of(asked.visit.caller, asked.given.q)
    if not query.terms:
        raise Refusal(422, "invalid", "a view must look for something: add a term to the search")
    return str(query)


async def _save(asked: Asked) -> Done:
    return await _kept(asked, own(asked.by), _query(asked))


async def _share(asked: Asked) -> Done:
    return await _kept(asked, ALL, _query(asked))


async def _remove(asked: Asked) -> Done:
    return await _kept(asked, own(asked.by), "")


async def _unshare(asked: Asked) -> Done:
    return await _kept(asked, ALL, "")


def _undoing(keep: str, forget: str) -> Callable[[Record], Undo]:
    """A view is as it was before: kept under its former query, or forgotten."""

    def undo(record: Record) -> Undo:
        name = record.arguments["name"]
        if record.before is None:
            return Undo(forget, {"name": name})
        return Undo(keep, {"name": name, "q": record.before})

    return undo


_undo_own = _undoing("views.save", "views.remove")
_undo_shared = _undoing("views.share", "views.unshare")

OPERATIONS: Final = (
    Operation(
        name="views.save",
        path="/views/save",
        needs=Permission.VIEW,
        text="Keep a search of one's own under a name.",
        arguments=View,
        do=_save,
        told="The view {name} is saved",
        undo=_undo_own,
    ),
    Operation(
        name="views.share",
        path="/views/share",
        needs=Permission.OPERATE,
        text="Keep a search under a name for everybody.",
        arguments=View,
        do=_share,
        told="Everybody has the view {name}",
        undo=_undo_shared,
    ),
    Operation(
        name="views.remove",
        path="/views/remove",
        needs=Permission.VIEW,
        text="Forget a search of one's own.",
        arguments=Named,
        do=_remove,
        told="The view {name} is forgotten",
        undo=_undo_own,
    ),
    Operation(
        name="views.unshare",
        path="/views/unshare",
        needs=Permission.OPERATE,
        text="Forget a search that everybody had.",
        arguments=Named,
        do=_unshare,
        told="The view {name} is forgotten",
        undo=_undo_shared,
    ),
)
