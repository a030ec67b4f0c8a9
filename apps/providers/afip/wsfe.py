"""One call of WSFEv1: what an HTTP answer, or none, says about what was done."""

from __future__ import annotations

from collections.abc import Iterable

from apps.providers.afip.errors import (
    AfipError,
    Permanent,
    RateLimited,
    Retryable,
    UnknownOutcome,
)
from apps.providers.afip.soap import Fault, Node, envelope, fault_of, headers
from apps.providers.afip.wsfe_answer import Result, read_result
from apps.providers.afip.wsfe_request import NAMESPACE
from apps.providers.http import Answer, Exchange, Unanswered, Unsent
from apps.providers.reading import Unreadable


class Wsfe:
    """Sends operations and reads their results."""

    def __init__(self, url: str, exchange: Exchange) -> None:
        self._url, self._exchange = url, exchange

    async def ask(
        self, operation: str, content: Iterable[Node], *, is_effect: bool = False
    ) -> Result:
        """The result of an operation.

        `is_effect`: the operation changes something, so that no answer means an unknown outcome.
        """
        answer = await self._post(operation, content, is_effect=is_effect)
        if answer.status != 200:
            raise _refusal(operation, answer, is_effect=is_effect)
        try:
            result = read_result(answer.body, operation)
        except Unreadable as problem:
            raise failure(operation, f"{problem}", is_effect=is_effect) from None
        if isinstance(result, Fault):
            raise failure(operation, "a fault came with status 200", is_effect=is_effect)
        return result

    async def _post(self, operation: str, content: Iterable[Node], *, is_effect: bool) -> Answer:
        sent, action = envelope(operation, NAMESPACE, content), headers(f"{NAMESPACE}{operation}")
        try:
            return await self._exchange.ask("POST", self._url, content=sent, headers=action)
        except Unsent as problem:
            raise Retryable(f"{operation} failed: {problem}", operation=operation) from None
        except Unanswered as problem:
            raise failure(operation, f"{problem}", is_effect=is_effect) from None


def failure(operation: str, problem: str, *, is_effect: bool) -> AfipError:
    """What it means that no usable answer came."""
    if is_effect:
        return UnknownOutcome(f"a CAE was asked for and {problem}", operation=operation)
    return Retryable(f"{operation} failed: {problem}", operation=operation)


def _refusal(operation: str, answer: Answer, *, is_effect: bool) -> AfipError:
    fault = fault_of(answer.body)
    if answer.status == 429:
        return RateLimited(
            f"{operation} has to wait", operation=operation, retry_after=answer.retry_after
        )
    is_ours = fault is not None and fault.code == "Client"
    if is_ours or (400 <= answer.status < 500 and answer.status != 408):
        return Permanent(
            f"{operation} was refused with status {answer.status}", operation=operation
        )
    return failure(operation, f"it answered with status {answer.status}", is_effect=is_effect)
