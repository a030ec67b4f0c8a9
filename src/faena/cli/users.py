"""`faena users` and `faena tokens`: who may come to the dashboard and the admin API."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import LASTING, ListedCommands, by, common, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, instant, table
from faena.errors import ConfigError
from faena.values.duration import to_us

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime
    from faena.web.access.account import Accounts, AccountView
    from faena.web.access.invitation import Invitations

_ADDRESS: Final = "http://127.0.0.1:3000/admin/queues"
_ROLES: Final = ("viewer", "operator", "admin", "owner")
_HEADS: Final = ("name", "role", "tenant", "payloads", "made", "by", "expires", "off")

_role = click.option(
    "--role", type=click.Choice(_ROLES), default="viewer", show_default=True, help="What it may do."
)
_tenant = click.option("--tenant", help="Show jobs of this tenant only.")
_payloads = click.option("--payloads", is_flag=True, help="Show payloads, results and log lines.")


@click.group(
    cls=ListedCommands,
    epilog=example("faena users shop.tasks:app", "faena users add ana --role owner"),
)
def users() -> None:
    """People who sign in to the dashboard: list, add, change or remove them.

    MODULE:APP alone lists them; every command takes --json.
    """


@click.group(
    cls=ListedCommands,
    epilog=example("faena tokens shop.tasks:app", "faena tokens add ci --role operator --for 90d"),
)
def tokens() -> None:
    """Tokens of programs that use the admin API: list, add or remove them.

    MODULE:APP alone lists them; every command takes --json.
    """


@users.command("list", epilog=example("faena users list"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def list_users(output: Output, words: tuple[str, ...]) -> None:
    """List all users."""
    _list(output, words, "user")


@tokens.command("list", epilog=example("faena tokens list"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def list_tokens(output: Output, words: tuple[str, ...]) -> None:
    """List all tokens, by the beginning of their digest."""
    _list(output, words, "token")


@users.command("add", epilog=example("faena users add ana --role owner --payloads"))
@words("[MODULE:APP] NAME")
@_role
@_tenant
@_payloads
@by
@common
@click.pass_obj
def add_user(output: Output, words: tuple[str, ...], **given: Any) -> None:
    """Add a user; the password is asked for, or read from standard input."""
    app, (name,) = _find(words, "NAME")
    password = _password()

    async def work() -> AccountView:
        return await (await _accounts(app)).add_user(_account(name, given), password)

    made = session.run(app, work)
    output.say(document(made), f"{made.name} can sign in as {made.role}")


@users.command(
    "invite",
    epilog=example("faena users invite ana --role admin", "faena users invite ana --again"),
)
@words("[MODULE:APP] NAME")
@_role
@_tenant
@_payloads
@click.option("--again", is_flag=True, help="Another link, for a user who is there; nothing else.")
@click.option("--address", default=_ADDRESS, show_default=True, help="Where the dashboard is.")
@by
@common
@click.pass_obj
def invite(
    output: Output, words: tuple[str, ...], *, again: bool, address: str, **given: Any
) -> None:
    """Add a user, and print a link with which the person sets a password: once, in two days."""
    app, (name,) = _find(words, "NAME")

    async def work() -> str:
        accounts = await _accounts(app)
        if not again:
            await accounts.add_invited(_account(name, given))
        return await _invitations(await app.runtime(), accounts).make(name)

    link = f"{address.rstrip('/')}/invitation/{session.run(app, work)}"
    output.say({"user": name, "link": link}, link)


@users.command("password", epilog=example("faena users password ana"))
@words("[MODULE:APP] NAME")
@common
@click.pass_obj
def password(output: Output, words: tuple[str, ...]) -> None:
    """Give a user another password; it is asked for, or read from standard input."""
    app, (name,) = _find(words, "NAME")
    new = _password()

    async def work() -> AccountView:
        return await (await _accounts(app)).change_user(name, password=new)

    output.say(document(session.run(app, work)), f"{name} has another password")


@users.command("remove", epilog=example("faena users remove ana"))
@words("[MODULE:APP] NAME")
@common
@click.pass_obj
def remove_user(output: Output, words: tuple[str, ...]) -> None:
    """Remove a user: sessions end at once."""
    _remove(output, words, "user", "NAME")


@tokens.command("add", epilog=example("faena tokens add ci --role operator --for 90d"))
@words("[MODULE:APP] NAME")
@_role
@_tenant
@_payloads
@click.option("--for", "lasting", type=LASTING, help="How long it is good.  [default: always]")
@by
@common
@click.pass_obj
def add_token(output: Output, words: tuple[str, ...], *, lasting: str | None, **given: Any) -> None:
    """Make a token and print it: this is the only time that it is shown."""
    app, (name,) = _find(words, "NAME")
    until = 0 if lasting is None else time.time_ns() // 1000 + to_us("--for", lasting)

    async def work() -> tuple[AccountView, str]:
        account = _account(name, given, expires_at=until)
        return await (await _accounts(app)).add_token(account)

    made, token = session.run(app, work)
    output.say({**document(made), "token": token}, token)


@tokens.command("remove", epilog=example("faena tokens remove 3f2a9c1b7e44"))
@words("[MODULE:APP] ID")
@common
@click.pass_obj
def remove_token(output: Output, words: tuple[str, ...]) -> None:
    """Remove a token, by the id that the list shows: it is refused at once."""
    _remove(output, words, "token", "ID")


def _list(output: Output, words: tuple[str, ...], kind: str) -> None:
    app, _ = _find(words)

    async def work() -> list[AccountView]:
        return await (await _accounts(app)).list()

    found = [one for one in session.run(app, work) if one.kind == kind]
    heads = _HEADS if kind == "user" else ("id", *_HEADS)
    rows = [_row(one, with_id=kind == "token") for one in found]
    none = f"no {kind}: `faena {kind}s add NAME` makes one"
    output.list(
        [document(one) for one in found],
        lambda console: console.print(table(heads, rows, none=none)),
    )


def _row(one: AccountView, *, with_id: bool) -> list[object]:
    row: list[object] = [
        one.name,
        one.role,
        one.tenant,
        "yes" if one.sees_payloads else "no",
        instant(one.made_at) if one.made_at else None,
        one.made_by,
        instant(one.expires_at) if one.expires_at else None,
        "yes" if one.is_off else "no",
    ]
    return [one.id, *row] if with_id else row


def _remove(output: Output, words: tuple[str, ...], kind: str, what: str) -> None:
    app, (ident,) = _find(words, what)

    async def work() -> AccountView:
        return await (await _accounts(app)).remove(kind, ident)

    gone = session.run(app, work)
    output.say(document(gone), f"{kind} {gone.name} is removed")


def _find(words: tuple[str, ...], *names: str) -> tuple[Faena, list[str]]:
    target, given = split(words, *names)
    return find_app(target), given


def _account(name: str, given: dict[str, Any], expires_at: int = 0) -> Any:
    from faena.web.access.account import Account  # noqa: PLC0415 - an extra
    from faena.web.access.role import Role  # noqa: PLC0415 - an extra

    return Account(
        name=name,
        role=Role(given["role"]),
        tenant=given["tenant"],
        sees_payloads=given["payloads"],
        made_at=time.time_ns() // 1000,
        made_by=given["by"],
        expires_at=expires_at,
    )


def _invitations(runtime: Runtime, accounts: Accounts) -> Invitations:
    from faena.web.access.invitation import Invitations  # noqa: PLC0415 - an extra

    return Invitations(runtime.engine, accounts)


async def _accounts(app: Faena) -> Accounts:
    try:
        from faena.web.access.account import Accounts  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigError(
            "accounts need the extra web: install it (in a clone of Faena: pip install '.[web]')"
        ) from None
    return Accounts((await app.runtime()).engine)


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return str(click.prompt("password", hide_input=True, confirmation_prompt=True, err=True))
