"""`python -m apps.campotech COMMAND`: prepare the installation that the environment describes.

migrate        brings the database to the newest release
organization   stores an organisation and prints its id and its token, once
user           stores somebody who works there and prints the id
customer       stores a customer of it and prints the id
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from apps.campotech import setup
from apps.campotech.settings import Settings
from apps.campotech.system import System
from faena.errors import FaenaError

Printed = dict[str, str]


def main() -> int:
    """2 for what makes no sense, 1 for what did not work."""
    given = _parser().parse_args()
    try:
        print(json.dumps(asyncio.run(_run(given))))  # noqa: T201 - what was asked for
    except ValueError as error:
        return _end(str(error), 2)
    except (OSError, FaenaError) as error:
        return _end(str(error), 1)
    return 0


async def _run(given: argparse.Namespace) -> Printed:
    async with System(Settings.from_env(os.environ)) as system:
        if given.command != "migrate":
            await setup.require_tables(system)
        return await _COMMANDS[given.command](system, given)


async def _migrate(system: System, _given: argparse.Namespace) -> Printed:
    await setup.migrate_all(system)
    return {"database": "is up to date"}


async def _organization(system: System, given: argparse.Namespace) -> Printed:
    wanted = setup.Organization(
        name=given.name,
        cuit=given.cuit,
        phone_number_id=given.phone_number_id,
        vat_condition=given.vat_condition,
        point_of_sale=given.point_of_sale,
    )
    made = await setup.admit(system, wanted)
    return {"id": str(made.id), "cuit": wanted.cuit, "token": made.token}


async def _user(system: System, given: argparse.Namespace) -> Printed:
    made = await setup.add_user(
        system, given.organization, given.name, given.role, email=given.email, phone=given.phone
    )
    return {"id": str(made)}


async def _customer(system: System, given: argparse.Namespace) -> Printed:
    made = await setup.add_customer(
        system, given.organization, given.name, email=given.email, phone=given.phone
    )
    return {"id": str(made)}


_COMMANDS: Final[dict[str, Callable[[System, argparse.Namespace], Awaitable[Printed]]]] = {
    "migrate": _migrate,
    "organization": _organization,
    "user": _user,
    "customer": _customer,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m apps.campotech",
        description="Prepares the installation that the environment describes.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("migrate", help="brings the database to the newest release")
    _organization_options(
        commands.add_parser("organization", help="stores one; prints its id and token, once")
    )
    user = commands.add_parser("user", help="stores somebody who works there; prints the id")
    _person_options(user)
    user.add_argument("--role", choices=setup.ROLES, default="owner")
    _person_options(commands.add_parser("customer", help="stores a customer; prints the id"))
    return parser


def _organization_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name")
    parser.add_argument("cuit", help="eleven digits, such as 30-70000002-4")
    parser.add_argument("--phone-number-id", help="its number at WhatsApp, as Meta calls it")
    parser.add_argument(
        "--vat-condition", type=int, default=1, help="1: issues A and B (default); else: C"
    )
    parser.add_argument("--point-of-sale", type=int, default=1, help="at AFIP (default: 1)")


def _person_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("organization", type=UUID, help="its id")
    parser.add_argument("name")
    parser.add_argument("--phone", help="such as +5491155550101")
    parser.add_argument("--email")


def _end(why: str, code: int) -> int:
    print(f"campotech: {why}", file=sys.stderr)  # noqa: T201 - a program's last words
    return code


if __name__ == "__main__":
    sys.exit(main())
