"""Sorts the errors of calls to upstreams: what an error says of the upstream, and what to do next.

retryable      it failed and nothing was done: try again           counts as a failure
permanent      it refused this request, and would again             no failure of the upstream's
rate_limited   it asked to wait                                     no failure; no calls until then
unknown        the request was sent and no answer came              counts as a failure

httpx is known by the names of its classes; it need not be installed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from faena.errors import ConfigError, shown
from faena.options.fields import check_choice
from faena.outcomes import RateLimited, Signal, UpstreamUnavailable

Kind: TypeAlias = Literal["retryable", "permanent", "rate_limited", "unknown"]
Sorting: TypeAlias = Mapping[type[BaseException] | int, Kind] | Callable[[BaseException], Any]
"""Kinds by exception class or HTTP status, or a function that returns one, or None to leave the
error to the usual rules."""

_log = logging.getLogger("faena.resilience")

KINDS: Final = get_args(Kind)
_A_SECOND_US: Final = 1_000_000
_ANSWERED: Final = 400
_STATUSES: Final = range(100, 600)
_TOO_MANY: Final = 429
_SERVER: Final = 500
_RETRYABLE: Final = frozenset({408, 421, 425})
_UNSENT: Final = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol")
_SENT: Final = ("TimeoutException", "NetworkError", "ProtocolError")


class Sorted(NamedTuple):
    """What an error means."""

    kind: Kind
    retry_after: Any = None
    """What the upstream said of how long to wait, as it said it."""
    upstream: str = ""
    """Which one it was."""


def check_sorting(sorting: Any) -> Sorting:
    """Return `sorting` when it is one."""
    if isinstance(sorting, Mapping):
        for key, kind in sorting.items():
            is_class = isinstance(key, type) and issubclass(key, BaseException)
            is_status = isinstance(key, int) and not isinstance(key, bool) and key in _STATUSES
            if not is_class and not is_status:
                raise ConfigError(
                    "sorting must be by exception class or HTTP status (100 to 599), "
                    f"got {shown(key)}",
                    field="sorting",
                    value=sorting,
                )
            check_choice(f"sorting of {shown(key)}", kind, KINDS)
        return sorting
    if callable(sorting):
        return sorting
    raise ConfigError(
        f"sorting must be a mapping such as {{TimeoutError: 'unknown', 409: 'permanent'}}, or a "
        f"function, got {shown(sorting)}",
        field="sorting",
        value=sorting,
    )


def at_least(wait_us: int) -> int:
    """How long to wait for an upstream that asked for it: a second where it said that none is
    needed, or names an instant that is over, because it did refuse."""
    return wait_us if wait_us > 0 else _A_SECOND_US


def sort_error(error: BaseException, sorting: Sorting | None = None) -> Sorted | None:
    """What an error says of the upstream; None when it says nothing: a handler's own signal, or a
    ConfigError such as that of a wrong `spend`, which is the program's fault."""
    if isinstance(error, RateLimited):
        return Sorted("rate_limited", error)
    is_own = isinstance(error, Signal | UpstreamUnavailable | ConfigError)
    if is_own or not isinstance(error, Exception):
        return None
    try:
        status, retry_after = _status(error)
    except Exception:  # noqa: BLE001 - a property of a user's class
        status, retry_after = None, None
    try:
        kind = _given(error, status, sorting)
    except Exception:  # noqa: BLE001 - a function of the program's
        _log.exception("sorting failed over %s; the usual rules apply", type(error).__name__)
        kind = None
    return Sorted(kind or _usual(error, status), retry_after)


def meaning_of(error: BaseException) -> Sorted | None:
    """What an error meant to the upstream whose call it ended, if it ended one."""
    return getattr(error, "faena_meaning", None)


def _given(error: BaseException, status: int | None, sorting: Sorting | None) -> Kind | None:
    if sorting is None:
        return None
    if not isinstance(sorting, Mapping):
        kind = sorting(error)
        if kind is not None:
            check_choice("what sorting returns", kind, KINDS)
        return kind
    if status is not None and status in sorting:
        return sorting[status]
    return next((sorting[cls] for cls in type(error).__mro__ if cls in sorting), None)


def _usual(error: BaseException, status: int | None) -> Kind:
    if status is not None:
        return _of_status(status)
    names = {cls.__name__ for cls in type(error).__mro__ if _is_httpx(cls)}
    if names & {*_UNSENT}:
        return "retryable"
    if names & {*_SENT}:
        return "unknown"
    if isinstance(error, ConnectionRefusedError):
        return "retryable"
    return "unknown" if isinstance(error, TimeoutError | ConnectionError) else "retryable"


def _of_status(status: int) -> Kind:
    if status == _TOO_MANY:
        return "rate_limited"
    if status >= _SERVER or status < _ANSWERED or status in _RETRYABLE:
        return "retryable"
    return "permanent"


def _is_httpx(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "httpx"


def _status(error: BaseException) -> tuple[int | None, Any]:
    """The HTTP status of an error that carries a response, and how long to wait: what the header
    Retry-After says, else the error's own `retry_after`."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) or getattr(error, "status_code", None)
    get = getattr(getattr(response, "headers", None), "get", None)
    header = get("retry-after") if callable(get) else None
    said = getattr(error, "retry_after", None) if header is None else header
    return status if isinstance(status, int) else None, said
