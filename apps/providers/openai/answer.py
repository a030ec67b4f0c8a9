"""What OpenAI answers, as far as it is read; anything else in an answer is passed over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from apps.providers.openai.errors import Permanent, Unfit, UnknownOutcome
from apps.providers.reading import typed

T = TypeVar("T")
_Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=10**6)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[T]):
    """What a model said."""

    value: T = field(repr=False)
    model: str
    """The version of the model that answered."""
    items: Mapping[str, int]
    """What it has used, for the price list: `upstream.spend(reply.items)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was heard."""

    text: str = field(repr=False)
    language: str | None
    seconds: float
    confidence: float | None
    """From 0 to 1: the mean probability of a token, weighed by the length of its segment; None if
    there were no segments."""
    items: Mapping[str, int]


class _Usage(msgspec.Struct):
    prompt_tokens: _Count
    completion_tokens: _Count


class _Function(msgspec.Struct):
    arguments: str


class _ToolCall(msgspec.Struct):
    function: _Function


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class Completion(msgspec.Struct):
    """The answer to a chat."""

    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: _Usage
    model: str = ""

    def items(self, model: str) -> dict[str, int]:
        """What it has used, by the name of the model that was asked for."""
        return {
            f"{model}.input": self.usage.prompt_tokens,
            f"{model}.output": self.usage.completion_tokens,
        }

    def text(self, items: Mapping[str, int]) -> str:
        """What was said, if it was said to the end."""
        choice = self.choices[0]
        message = choice.message
        if message.refusal or choice.finish_reason == "content_filter":
            raise Permanent("the model declined to answer", code="refusal", items=items)
        if choice.finish_reason == "length":
            raise Unfit("the model's answer was cut short", code="length", items=items)
        if message.tool_calls:
            return message.tool_calls[0].function.arguments
        if message.content is None:
            raise Unfit("the model's answer is empty", items=items)
        return message.content


class _Segment(msgspec.Struct):
    start: float
    end: float
    avg_logprob: float


class Speech(msgspec.Struct):
    """The answer to a recording, as `verbose_json`."""

    text: str
    duration: _Seconds
    language: str | None = None
    segments: list[_Segment] = []

    def confidence(self) -> float | None:
        """The mean over all segments."""
        lengths = [max(0.0, one.end - one.start) for one in self.segments]
        if not sum(lengths):
            return None
        chances = [math.exp(min(0.0, one.avg_logprob)) for one in self.segments]
        weighed = (length * chance for length, chance in zip(lengths, chances, strict=True))
        return sum(weighed) / sum(lengths)


def read(body: bytes, kind: type[T]) -> T:
    """Read an answer; one that cannot be read may have been paid for."""
    return typed(body, kind, UnknownOutcome("openai's answer cannot be read"))


def fit(text: str, kind: type[T], items: Mapping[str, int]) -> T:
    """What a model said, as the type that was asked for."""
    name: Any = getattr(kind, "__name__", kind)
    return typed(text, kind, Unfit(f"the model's answer does not fit {name}", items=items))
