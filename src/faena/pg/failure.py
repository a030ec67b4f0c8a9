"""The one place where errors of the driver become errors of Faena."""

from __future__ import annotations

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
_MISSING: Final = (
    pg_errors.UndefinedTable,
    pg_errors.UndefinedFunction,
    pg_errors.InvalidSchemaName,
)


@contextmanager
def translated(op: str) -> Generator[None]:
    """Errors of the driver raised inside are raised as errors of Faena."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        raise translate(error, op) from error


def translate(error: Exception, op: str) -> FaenaError:
    """What an error of the driver means to a user."""
    words = _words(error)
    if isinstance(error, _MISSING):
        return StoreRejected(f"{words}; run `faena pg migrate` first", op=op)
    if isinstance(error, pg_errors.UntranslatableCharacter):
        return PayloadError(f"payload must have no NUL character, got {words}", op=op)
    if isinstance(error, pg_errors.RaiseException):
        return ArgumentError(words)
    if isinstance(error, _UNAVAILABLE):
        return StoreUnavailable(f"PostgreSQL cannot be reached: {words}", op=op)
    return StoreRejected(f"PostgreSQL refused: {words}", op=op)


def is_unreachable(error: FaenaError) -> bool:
    """Whether PostgreSQL itself, not an object store or a lock, is why a call failed."""
    return isinstance(error, StoreUnavailable) and isinstance(
        error.__cause__, (psycopg.Error, PoolTimeout)
    )


def _words(error: Exception) -> str:
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return (primary or str(error) or type(error).__name__).strip()
