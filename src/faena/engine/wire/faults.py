"""Decides what to do after a failure: wait, use another node, load the script, or give up.

The only place where errors of the server become errors of Faena.
"""

from __future__ import annotations

import ssl
from enum import Enum, auto
from typing import Any

import hiredis

from faena.engine.wire.address import Node
from faena.errors import ScriptError, StoreError, StoreRejected, StoreUnavailable


class Verdict(Enum):
    """What to do about a failure."""

    WAIT = auto()  # the server will recover where it is
    LOOK = auto()  # another server may have taken over: find out which
    MOVED = auto()  # the slot lives elsewhere from now on
    ASK = auto()  # this one request belongs elsewhere
    LOAD = auto()  # the library is not there
    REJECTED = auto()  # it understood and said no
    BROKEN = auto()  # a script failed, or the request made no sense


FINAL = frozenset({Verdict.REJECTED, Verdict.BROKEN, Verdict.LOAD})
REDIRECTIONS = frozenset({Verdict.MOVED, Verdict.ASK})

_VERDICTS = {
    "ASK": Verdict.ASK,
    "BUSY": Verdict.WAIT,
    "CLUSTERDOWN": Verdict.LOOK,
    "DENIED": Verdict.REJECTED,
    "LOADING": Verdict.LOOK,
    "MASTERDOWN": Verdict.LOOK,
    "MISCONF": Verdict.REJECTED,
    "MOVED": Verdict.MOVED,
    "NOAUTH": Verdict.REJECTED,
    "NOPERM": Verdict.REJECTED,
    "NOREPLICAS": Verdict.WAIT,
    "NOSCRIPT": Verdict.LOAD,
    "OOM": Verdict.REJECTED,
    "READONLY": Verdict.LOOK,
    "TRYAGAIN": Verdict.WAIT,
    "UNBLOCKED": Verdict.LOOK,
    "WRONGPASS": Verdict.REJECTED,
}

_DENIED = "ACL failure in script"

_GENERIC = {  # said under the code ERR
    _DENIED: Verdict.REJECTED,
    "Function not found": Verdict.LOAD,
    "max number of clients": Verdict.WAIT,
    "cluster support disabled": Verdict.REJECTED,
    "without any password configured": Verdict.REJECTED,
}

_REMEDIES = {
    "ASK": "the server is a node of a cluster, which needs a +cluster URL",
    "MOVED": "the server is a node of a cluster, which needs a +cluster URL",
    "DENIED": "the server is in protected mode and requires a password",
    "ERR": "the URL does not fit the server",
    "MISCONF": "the server cannot write to its disk",
    "NOAUTH": "the server requires a password: put it in the URL, valkey://user:password@host",
    "NOPERM": "the user lacks a permission, see ACL GETUSER and `faena doctor`",
    "OOM": "the server is at its maxmemory",
    "WRONGPASS": "the user name or the password is wrong",
}

Failure = hiredis.ReplyError | OSError


class Misfit(ConnectionError):
    """The server does not match the URL: TLS, database, password, or kind of server."""


class NotOurs(ConnectionError):
    """The received data is not a reply of Valkey or Redis."""


def judge(failure: Failure) -> Verdict:
    """Classify a failure; any connection error may mean that another server took over."""
    if isinstance(failure, ssl.SSLCertVerificationError | Misfit):
        return Verdict.REJECTED
    if isinstance(failure, OSError):
        return Verdict.LOOK
    for words, verdict in _GENERIC.items():
        if words in str(failure):
            return verdict
    return _VERDICTS.get(_code(failure), Verdict.BROKEN)


def redirection(failure: Failure, asked: Node) -> tuple[int, Node]:
    """Slot and node out of `MOVED 3999 127.0.0.1:7002`; an empty host means the one asked."""
    _, slot, endpoint = str(failure).split(" ")[:3]
    host, _, port = endpoint.rpartition(":")
    return int(slot), Node(host.strip("[]") or asked.host, int(port))


def refused(failure: Failure, *, where: object, op: str) -> StoreError:
    """The error for a failure that waiting cannot fix."""
    if judge(failure) is Verdict.BROKEN:
        return ScriptError(f"{op} failed on the broker at {where}: {_words(failure)}", op=op)
    code = "NOPERM" if _DENIED in str(failure) else _code(failure)
    remedy = _REMEDIES.get(code, "")
    said = f"{remedy} ({_words(failure)})" if remedy else _words(failure)
    return StoreRejected(f"the broker at {where} refused the call: {said}", op=op)


def translated(failure: Failure, *, where: object, op: str) -> StoreError:
    """The error for a failure that is not retried."""
    say = refused if judge(failure) in FINAL else unavailable
    return say(failure, where=where, op=op)


def is_missing_script(reply: Any) -> bool:
    """True when the node does not have the script any more."""
    return isinstance(reply, hiredis.ReplyError) and judge(reply) is Verdict.LOAD


def lacks_functions(reply: Any) -> bool:
    """True when the server has no functions, or none for this user."""
    if not isinstance(reply, hiredis.ReplyError):
        return False
    text = str(reply).lower()
    is_unknown = text.startswith(("err unknown command 'fcall", "err unknown command 'function"))
    is_denied = text.startswith("noperm") and ("'fcall" in text or "'function" in text)
    return is_unknown or is_denied


def refuses_scripts(reply: Any) -> bool:
    """True when the server also refuses plain scripts of this user."""
    text = str(reply).lower() if isinstance(reply, hiredis.ReplyError) else ""
    return text.startswith(("noperm", "err unknown command 'eval"))


def is_full(reply: Any) -> bool:
    """True when the node accepts no more data."""
    return isinstance(reply, hiredis.ReplyError) and _code(reply) == "OOM"


def as_value(reply: Any, *, where: object, op: str) -> Any:
    """The reply, or the error it stands for, to be handed on instead of raised."""
    if isinstance(reply, hiredis.ReplyError):
        said = f"the broker at {where} did not confirm it: {_words(reply)}"
        return StoreRejected(said, op=op)
    return reply


def unavailable(
    failure: Failure,
    *,
    where: object,
    op: str,
    waited_s: float = 0.0,
    is_outcome_unknown: bool = False,
) -> StoreUnavailable:
    """The error for a failure that lasted longer than the patience."""
    after = f" after {waited_s:.1f} s" if waited_s >= 0.05 else ""
    message = f"could not reach the broker at {where}{after}: {_words(failure)}"
    return StoreUnavailable(message, op=op, is_outcome_unknown=is_outcome_unknown)


def _code(failure: Failure) -> str:
    return str(failure).partition(" ")[0]


def _words(failure: Failure) -> str:
    text = str(failure).strip() or type(failure).__name__
    if isinstance(failure, OSError) and failure.strerror:
        text = failure.strerror
    return text.rstrip(".").replace("\n", " ")
