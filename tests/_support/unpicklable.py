"""Exceptions that no pickle brings back, raised beside the worker and in a process of its own."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, Self

from faena import Discard, Faena, RateLimited, Retry, Snooze


class ProviderDown(Exception):
    """Cannot be made anew out of its args."""

    def __init__(self, provider: str, status: int) -> None:
        super().__init__(f"{provider} answered {status}")
        self.provider = provider
        self.code = f"HTTP_{status}"
        self.wait = timedelta(seconds=7)


class WithLock(ProviderDown):
    def __init__(self) -> None:
        super().__init__("afip", 500)
        self.lock = threading.Lock()


class Endless(ProviderDown):
    """Whoever unpickles it never comes back."""

    def __init__(self) -> None:
        super().__init__("endless", 501)

    def __reduce__(self) -> Any:
        return _for_ever, ()


class Refusing(ConnectionRefusedError):
    def __reduce__(self) -> Any:
        raise RuntimeError("not me")


class Sealed(Exception):
    """Nobody may make one but its maker."""

    def __new__(cls, *_: Any, made: bool = False) -> Self:
        if not made:
            raise TypeError("not by you")
        return super().__new__(cls)

    def __init__(self, *_: Any, made: bool = False) -> None:
        self.made = made

    def __str__(self) -> str:
        return "sealed"


class Nap(Snooze):
    def __init__(self) -> None:
        super().__init__("3h")
        self.lock = threading.Lock()


class Busy(RateLimited):
    def __init__(self, limit: int) -> None:
        super().__init__(limit, "tenant")


class Nowhere(Discard):
    def __init__(self, who: str, where: str) -> None:
        super().__init__(f"{who} is not in {where}")


def _for_ever() -> None:
    threading.Event().wait()


def _local() -> Exception:
    class Local(WithLock, LookupError):
        pass

    return Local()


def _caused() -> Exception:
    error = RuntimeError("the provider is away")
    error.__cause__ = ConnectionRefusedError(111, "refused")
    return error


_KINDS: dict[str, Any] = {
    "two arguments": lambda: ProviderDown("afip", 503),
    "a lock": WithLock,
    "in a function": _local,
    "endless": Endless,
    "refusing": lambda: Refusing(111, "refused"),
    "sealed": lambda: Sealed(made=True),
    "a cause": _caused,
    "a group": lambda: ExceptionGroup("several", [ValueError("a"), WithLock()]),
    "unicode": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "key": lambda: KeyError("name"),
    "exit": lambda: SystemExit(3),
    "nap": Nap,
    "busy": lambda: Busy(5),
    "nowhere": lambda: Nowhere("ana", "the book"),
}
KINDS = tuple(_KINDS)

app = Faena("strange")
work = app.queue("work", timeout="60s", retry=Retry.fixed("1h", attempts=3, jitter=0))


def misbehave(kind: str) -> None:
    error: BaseException = _KINDS[kind]()
    raise error


@work.task
async def beside(kind: str) -> None:
    misbehave(kind)


@work.task(run="process")
def apart(kind: str) -> None:
    misbehave(kind)


@work.batch(size=2, wait="1ms", run="process")
def together(kinds: list[str]) -> list[Exception | None]:
    return [_KINDS[kind]() for kind in kinds]


@work.task(run="process")
def odd(kind: str):
    return {"object": object(), "large": "x" * 2_000_000}[kind]
