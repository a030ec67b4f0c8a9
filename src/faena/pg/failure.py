"""The one place where errors of the driver become errors of Faena.

Statements of Faena are `translated`. Those of a user, inside of `pg.transaction()`, are not
(`as_raised`): a program catches `UniqueViolation` as it does with the driver alone.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors as pg_errors
from psycopg_pool import PoolTimeout

from faena.errors import ArgumentError, FaenaError, PayloadError, StoreRejected, StoreUnavailable

_UNAVAILABLE: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    PoolTimeout,
    OSError,
)
_ENDING: Final = (*_UNAVAILABLE, psycopg.InternalError)
"""The last is the driver's own where it has no code: what a pooler that died has answered fits no
question."""
_MISSING: Final = (
    pg_errors.UndefinedTable,
    pg_errors.UndefinedFunction,
    pg_errors.InvalidSchemaName,
)
_OWN: Final = re.compile(r'\bfaena\.|schema "?faena\b')
"""In words of PostgreSQL: something of the schema `faena`."""
_IDLE: Final = frozenset({"25P03", "25P04"})
"""Codes with which the server ends a transaction that has been idle, or open, for too long."""
_LOST: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "53300"}) | _IDLE
"""Codes with which the server ends a connection, or takes none; so do all of class 08."""
_ROLES: Final = (
    "the section Roles of docs/postgres-connections.md lists the rights that a role needs"
)


@contextmanager
def translated(op: str) -> Generator[None]:
    """Errors of the driver raised inside are raised as errors of Faena."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        raise translate(error, op) from error


@contextmanager
def as_raised(op: str) -> Generator[None]:
    """Errors of the driver pass, but a lost connection and what is about the schema `faena`."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        if not (_is_lost(error) or _is_own(error)):
            raise
        raise translate(error, op) from error


def translate(error: Exception, op: str) -> FaenaError:
    """What an error of the driver means to a user."""
    words = words_of(error)
    if isinstance(error, _MISSING) and _OWN.search(words):
        return StoreRejected(f"{words}; {_missing(error)}", op=op)
    if isinstance(error, pg_errors.UntranslatableCharacter):
        return PayloadError(f"payload must have no NUL character, got {words}", op=op)
    if isinstance(error, pg_errors.RaiseException):
        return ArgumentError(words)
    if isinstance(error, pg_errors.InsufficientPrivilege):
        return StoreRejected(f"PostgreSQL refused: {words}; {_ROLES}", op=op)
    if isinstance(error, _UNAVAILABLE) or _is_lost(error):
        return StoreUnavailable(f"PostgreSQL cannot be reached: {words}", op=op)
    return StoreRejected(f"PostgreSQL refused: {words}", op=op)


def is_unreachable(error: FaenaError) -> bool:
    """Whether PostgreSQL itself, not an object store, a lock, a process that was idle for too long
    or `direct_url`, is why a call failed."""
    cause = error.__cause__
    return (
        isinstance(error, StoreUnavailable)
        and isinstance(cause, (psycopg.Error, PoolTimeout))
        and cause.sqlstate not in _IDLE
        and error.op != "direct"
    )


def words_of(error: Exception) -> str:
    """What the server or the driver says, in one line."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return (primary or str(error) or type(error).__name__).strip()


def _missing(error: Exception) -> str:
    if isinstance(error, pg_errors.UndefinedFunction):
        return "run `faena pg migrate` first, or cast its arguments, such as `$3::jsonb`"
    return "run `faena pg migrate` first"


def _is_lost(error: Exception) -> bool:
    """The driver has some of these codes in other classes than those of a lost connection."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    is_ended = state is None or state.startswith("08")
    return state in _LOST or (
        isinstance(error, (*_UNAVAILABLE, psycopg.InternalError)) and is_ended
    )


def _is_own(error: psycopg.Error) -> bool:
    if isinstance(error, pg_errors.RaiseException):
        return "function faena." in (error.diag.context or "")
    is_known = isinstance(error, (*_MISSING, pg_errors.InsufficientPrivilege))
    return is_known and _OWN.search(words_of(error)) is not None
