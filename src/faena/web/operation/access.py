"""Who has access: users, the links that invite them, and tokens."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from faena.engine import Engine
from faena.values.duration import to_us
from faena.web.access.account import Account, Accounts, AccountView
from faena.web.access.invitation import Invitations
from faena.web.access.role import Permission, Role
from faena.web.operation.operation import Asked, Done, Nothing, Operation


class NewUser(msgspec.Struct, forbid_unknown_fields=True):
    """A person who signs in with a password."""

    name: str
    password: str
    role: Role = Role.VIEWER
    tenant: str | None = None
    """The only one whose jobs are shown; none: all."""
    payloads: bool = False
    """Whether payloads, results and log lines are shown."""


class Invited(msgspec.Struct, forbid_unknown_fields=True):
    """A person who is sent a link to set a password."""

    name: str
    role: Role = Role.VIEWER
    tenant: str | None = None
    payloads: bool = False


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """What is changed of a user; what is left out stays."""

    role: Role | None = None
    payloads: bool | None = None
    off: bool | None = None
    """Whether the user is kept out."""


class Password(msgspec.Struct, forbid_unknown_fields=True):
    """Another password."""

    password: str


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    """A program that uses the API."""

    name: str
    role: Role = Role.VIEWER
    tenant: str | None = None
    payloads: bool = False
    lasting: str | None = None
    """How long it is good, such as 90d; none: until it is removed."""


class Link(msgspec.Struct, frozen=True):
    """A link that is shown once."""

    user: str
    path: str
    """Below the dashboard: it is open for two days, and for one use."""


class Token(msgspec.Struct, frozen=True):
    """A token that is shown once."""

    id: str
    name: str
    token: str


async def _engine(asked: Asked) -> Engine:
    return (await asked.app.runtime()).engine


async def _accounts(asked: Asked) -> Accounts:
    return Accounts(await _engine(asked))


def _account(asked: Asked, **more: Any) -> Account:
    given = asked.given
    return Account(
        name=given.name,
        role=given.role,
        tenant=given.tenant or None,
        sees_payloads=given.payloads,
        made_at=time.time_ns() // 1000,
        made_by=asked.by,
        **more,
    )


async def _add(asked: Asked) -> Done:
    made = await (await _accounts(asked)).add_user(_account(asked), asked.given.password)
    return Done(made.to_dict(), None, _told(made))


async def _invite(asked: Asked) -> Done:
    engine = await _engine(asked)
    accounts = Accounts(engine)
    made = await accounts.add_invited(_account(asked))
    secret = await Invitations(engine, accounts).make(made.name)
    return Done(Link(made.name, f"/invitation/{secret}"), None, _told(made))


async def _link(asked: Asked) -> Done:
    engine, name = await _engine(asked), asked.where["user"]
    secret = await Invitations(engine, Accounts(engine)).make(name)
    return Done(Link(name, f"/invitation/{secret}"), None, "another link")


async def _change(asked: Asked) -> Done:
    accounts, name, given = await _accounts(asked), asked.where["user"], asked.given
    changes: dict[str, object] = {}
    if given.role is not None:
        changes["role"] = given.role
    if given.payloads is not None:
        changes["sees_payloads"] = given.payloads
    if given.off is not None:
        changes["is_off"] = given.off
    before = _told(await accounts.known_user(name))
    after = await accounts.change_user(name, **changes)
    return Done(after.to_dict(), before, _told(after))


async def _password(asked: Asked) -> Done:
    accounts, name = await _accounts(asked), asked.where["user"]
    after = await accounts.change_user(name, password=asked.given.password)
    return Done(after.to_dict(), None, "another password")


async def _remove_user(asked: Asked) -> Done:
    gone = await (await _accounts(asked)).remove("user", asked.where["user"])
    return Done(gone.to_dict(), _told(gone), None)


async def _add_token(asked: Asked) -> Done:
    lasting = asked.given.lasting
    until = time.time_ns() // 1000 + to_us("lasting", lasting, least_us=1) if lasting else 0
    account = _account(asked, expires_at=until)
    made, token = await (await _accounts(asked)).add_token(account)
    return Done(Token(made.id, made.name, token), None, _told(made))


async def _remove_token(asked: Asked) -> Done:
    gone = await (await _accounts(asked)).remove("token", asked.where["token_id"])
    return Done(gone.to_dict(), _told(gone), None)


def _told(view: AccountView) -> dict[str, Any]:
    """An account as the trail keeps it."""
    names = ("kind", "id", "name", "role", "tenant", "sees_payloads", "expires_at", "is_off")
    return {name: getattr(view, name) for name in names}


def _operation(
    name: str,
    path: str,
    do: Any,
    text: str,
    arguments: Any,
    answers: Any = AccountView,
    shows: str = "",
) -> Operation:
    return Operation(
        name=name,
        path=path,
        needs=Permission.OWN,
        text=text,
        arguments=arguments,
        do=do,
        answers=answers,
        shows=shows,
    )


OPERATIONS: Final = (
    _operation("users.add", "/users", _add, "Add a user with a password.", NewUser),
    _operation(
        "users.invite",
        "/users/invite",
        _invite,
        "Add a user who sets the password with a link, which is answered once.",
        Invited,
        answers=Link,
        shows="path",
    ),
    _operation(
        "users.link",
        "/users/{user}/link",
        _link,
        "Make another link with which a user sets a password.",
        Nothing,
        answers=Link,
        shows="path",
    ),
    _operation(
        "users.change",
        "/users/{user}/change",
        _change,
        "Change the role of a user, or what a user sees, or keep one out.",
        Change,
    ),
    _operation(
        "users.password",
        "/users/{user}/password",
        _password,
        "Give a user another password; sessions with the old one end.",
        Password,
    ),
    _operation(
        "users.remove",
        "/users/{user}/remove",
        _remove_user,
        "Remove a user: sessions end at once.",
        Nothing,
    ),
    _operation(
        "tokens.add",
        "/tokens",
        _add_token,
        "Make a token, which is answered once.",
        NewToken,
        answers=Token,
        shows="token",
    ),
    _operation(
        "tokens.remove",
        "/tokens/{token_id}/remove",
        _remove_token,
        "Remove a token: it is refused at once.",
        Nothing,
    ),
)
