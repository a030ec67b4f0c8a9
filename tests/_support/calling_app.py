"""An app whose handlers run in child processes and call upstreams there."""

from __future__ import annotations

import os
import threading

from faena import Breaker, Budget, Faena, Price, Retry

NAMESPACE = "CALLING_APP_NAMESPACE"
"""Names the namespace in the environment, for child processes have no other word of it."""

app = Faena("calling", namespace=os.environ.get(NAMESPACE, "calling"))
queue = app.queue("calls", timeout="60s", retry=Retry.never())
ai = app.upstream(
    "ai",
    breaker=Breaker(volume=3, open="10m"),
    prices=[Price("call", "0.01 USD"), Price("token", "0.001 USD")],
    budgets=[Budget("100 USD", soft=0.5)],
)
afip = app.upstream("afip", breaker=Breaker(volume=1, open="100ms", longest="100ms"))


class Answer:
    """A response that no other process can read."""

    status_code = 429

    def __init__(self) -> None:
        self.headers = {"retry-after": "600"}


class Busy(Exception):
    """As HTTP clients raise it."""

    def __init__(self) -> None:
        super().__init__("busy")
        self.response = Answer()


@queue.task(run="process", upstreams=[ai])
def once() -> None:
    with ai.call():
        pass


@queue.task(run="process", upstreams=[ai])
def twice() -> None:
    with ai.call() as call:
        call.spend(token=3)
    with ai.call():
        pass


@queue.task(run="process", upstreams=[ai])
def is_the_call(tokens: int) -> bool:
    if tokens:
        ai.spend(token=tokens)
    return ai.is_frugal


@queue.task(run="process", upstreams=[ai])
def fail(kind: str) -> None:
    with ai.call():
        raise {"down": ConnectionRefusedError("down"), "busy": Busy()}[kind]


@queue.task(run="process", upstreams=[ai], timeout="1s")
def hang() -> None:
    with ai.call():
        threading.Event().wait()


@queue.task(run="process", upstreams=[afip])
def request(is_down: bool) -> None:
    with afip.call():
        if is_down:
            raise ConnectionRefusedError("down")
