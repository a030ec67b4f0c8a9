"""Chats and transcriptions of OpenAI, through its SDK. Nothing is retried here.

    client = Client(Settings.from_env(os.environ), http)
    reply = await client.extract([Message("user", transcript)], VoiceJob)
    upstream.spend(reply.items)

`http` is the program's, and stays open. Errors are those of `errors.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar, cast

import httpx
import openai

from apps.providers.openai.answer import Completion, Reply, Speech, Transcript, fit, read
from apps.providers.openai.bounded import BoundedTransport
from apps.providers.openai.errors import Permanent, UnknownOutcome, translate
from apps.providers.openai.estimate import minutes
from apps.providers.openai.schema import schema_name, strict_schema
from apps.providers.openai.settings import Settings

T = TypeVar("T")

MOST_TOKENS: Final = 1000
"""Of an answer, unless a call says otherwise."""
MOST_AUDIO: Final = 25 * 2**20
"""Bytes of a recording."""

CONNECT_S: Final = 5.0
"""How long a connection may take: less than the whole call, so that one which was never made is
told from one without an answer."""

_SCHEMA_MODELS: Final = ("gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4")
"""Models whose answers can be bound to a schema. Older ones bind the arguments of a function."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str = field(repr=False)


class Client:
    """Asks OpenAI."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._settings = settings
        through = httpx.AsyncClient(transport=BoundedTransport(http), trust_env=False)
        self._sdk = openai.AsyncOpenAI(
            api_key=settings.key,
            base_url=settings.base_url,
            timeout=openai.Timeout(settings.timeout_s, connect=CONNECT_S),
            max_retries=0,
            http_client=cast("Any", through),  # clients of httpx work; the types know httpx2 only
        )
        # The SDK takes what is not given from the environment.
        self._sdk.organization = settings.organization
        self._sdk.project = settings.project

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        max_tokens: int = MOST_TOKENS,
        temperature: float | None = None,
    ) -> Reply[str]:
        """What a model says to a conversation."""
        options = _given(temperature=temperature, max_completion_tokens=max_tokens)
        return await self._ask(messages, str, model, options)

    async def extract(
        self,
        messages: Sequence[Message],
        result: type[T],
        *,
        model: str | None = None,
        max_tokens: int = MOST_TOKENS,
        temperature: float | None = None,
    ) -> Reply[T]:
        """The same as a value of a type: a msgspec struct, a dataclass or a TypedDict."""
        options = _given(temperature=temperature, max_completion_tokens=max_tokens)
        bound = _bound_to(result, model or self._settings.chat_model)
        return await self._ask(messages, result, model, {**options, **bound})

    async def transcribe(
        self, audio: bytes, *, name: str = "audio.ogg", language: str | None = "es"
    ) -> Transcript:
        """What is said in a recording; `name` says which format it has."""
        if len(audio) > MOST_AUDIO:
            raise Permanent(f"a recording must have at most {MOST_AUDIO} bytes", code="too_large")
        model, options = self._settings.speech_model, _given(language=language)
        async with _translated(self._settings.timeout_s):
            answer = await self._sdk.audio.transcriptions.with_raw_response.create(
                file=(name, audio), model=model, response_format="verbose_json", **options
            )
            body = answer.content
        speech = read(body, Speech)
        return Transcript(
            text=speech.text.strip(),
            language=speech.language,
            seconds=speech.duration,
            confidence=speech.confidence(),
            items={f"{model}.minute": minutes(speech.duration)},
        )

    async def _ask(
        self,
        messages: Sequence[Message],
        result: type[T],
        model: str | None,
        options: dict[str, Any],
    ) -> Reply[T]:
        asked = model or self._settings.chat_model
        turns: Any = [{"role": one.role, "content": one.content} for one in messages]
        async with _translated(self._settings.timeout_s):
            answer = await self._sdk.chat.completions.with_raw_response.create(
                messages=turns, model=asked, **options
            )
            body = answer.content
        completion = read(body, Completion)
        items = completion.items(asked)
        text = completion.text(items)
        value = cast("T", text) if result is str else fit(text, result, items)
        return Reply(value=value, model=completion.model, items=items)


def _bound_to(result: type, model: str) -> dict[str, Any]:
    name, schema = schema_name(result), strict_schema(result)
    if model.startswith(_SCHEMA_MODELS):
        bound = {"name": name, "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": bound}}
    function = {"name": name, "parameters": schema, "strict": True}
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": name}},
    }


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@asynccontextmanager
async def _translated(timeout_s: float) -> AsyncGenerator[None]:
    """Errors of the SDK hold the request with its key, so none of them stays behind ours."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except openai.OpenAIError as error:
        raise translate(error) from None
    except TimeoutError:
        raise UnknownOutcome("openai did not answer in time") from None
