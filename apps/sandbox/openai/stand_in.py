"""A stand-in for OpenAI: chats by a few rules, transcriptions of recordings that were made for it.

A chat is answered, in this order, with
    what was told with `say`, if the last message of the user contains the phrase;
    a value that fits the schema, where one is asked for by `json_schema` or a forced function;
    `{}` in JSON mode;
    "Entendido: " and the beginning of the last message.

Tokens are counted simply: four characters are one, a begun one counts, and each message has four
more. Answers beyond `max_completion_tokens` are cut, with `finish_reason` "length".
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from apps.sandbox.openai.check import (
    FORMATS,
    SPEECH_MODELS,
    Refusal,
    check_chat,
    check_key,
    check_model,
)
from apps.sandbox.openai.fill import fill
from apps.sandbox.openai.spoken import Heard, heard
from apps.sandbox.stand_in import Reply, StandIn

_PER_MESSAGE: Final = 4
_MOST_AUDIO: Final = 25 * 2**20
_WRONG: Final = '{"lo siento'
_CLEAR, _UNCLEAR = -0.1, -1.5
"""The mean logarithm of a token's probability; recordings with "(inaudible)" are unclear."""


def tokens(text: str) -> int:
    """How many tokens a text has, for this stand-in."""
    return -(-len(text) // 4)


class OpenAI(StandIn):
    """The service; its address ends with `/v1`."""

    name: ClassVar[str] = "openai"

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key
        self._said: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self.is_quota_used_up = False
        """Whether the account has no money left: a 429 that waiting does not mend."""
        self.retry_after_ms: int | None = None
        """What a rate limit says besides, in milliseconds."""

    def routes(self) -> Sequence[BaseRoute]:
        """Chats and recordings."""
        return [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/audio/transcriptions", self._transcribe, methods=["POST"]),
        ]

    def say(self, phrase: str, answer: str) -> None:
        """Answer messages that contain a phrase."""
        self._said[phrase.lower()] = answer

    def failure(self, status: int) -> Response:
        """In OpenAI's format."""
        kind = "requests" if status == 429 else "server_error"
        code = "rate_limit_exceeded" if status == 429 else None
        error = {"message": "The server had an error.", "type": kind, "param": None, "code": code}
        ms = self.retry_after_ms
        headers = {"retry-after-ms": str(ms)} if ms is not None and status == 429 else None
        return JSONResponse({"error": error}, status, headers)

    async def _chat(self, request: Request) -> Response:
        async def work(is_wrong: bool) -> Reply:
            check_key(request.headers.get("authorization"), self._key)
            self._check_quota()
            return self._complete(check_chat(await _json(request)), is_wrong)

        return await self._answer("chat", work, request)

    async def _transcribe(self, request: Request) -> Response:
        async def work(is_wrong: bool) -> Reply:
            check_key(request.headers.get("authorization"), self._key)
            self._check_quota()
            return await _hear(request, is_wrong)

        return await self._answer("transcribe", work, request)

    async def _answer(
        self, operation: str, work: Callable[[bool], Awaitable[Reply]], request: Request
    ) -> Response:
        await request.body()  # whoever asked may be gone when a slow answer is due
        response = await self.play(operation, work)
        response.headers["x-request-id"] = f"req_{next(self._numbers)}"
        return response

    def _check_quota(self) -> None:
        if self.is_quota_used_up:
            kind = "insufficient_quota"
            raise Refusal(429, "You exceeded your current quota.", code=kind, kind=kind)

    def _complete(self, body: dict[str, Any], is_wrong: bool) -> Reply:
        messages, answer = body["messages"], self._choose(body, is_wrong)
        most = body.get("max_completion_tokens", body.get("max_tokens", 4096))
        is_cut = tokens(answer.text) > most
        text = answer.text[: most * 4] if is_cut else answer.text
        used_in = sum(tokens(one["content"]) + _PER_MESSAGE for one in messages)
        used_out = tokens(text)
        usage = {
            "prompt_tokens": used_in,
            "completion_tokens": used_out,
            "total_tokens": used_in + used_out,
        }
        choice = {
            "index": 0,
            "message": answer.message(text),
            "finish_reason": "length" if is_cut else "stop",
            "logprobs": None,
        }
        whole = {
            "id": f"chatcmpl-{next(self._numbers)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": f"{body['model']}-2024-04-09",
            "choices": [choice],
            "usage": usage,
        }
        detail = {"model": body["model"], "input": used_in, "output": used_out}
        return Reply(response=JSONResponse(whole), subject=body["model"], detail=detail)

    def _choose(self, body: Mapping[str, Any], is_wrong: bool) -> _Said:
        asked = [one["content"] for one in body["messages"] if one["role"] == "user"]
        last = asked[-1] if asked else ""
        function = _forced(body)
        form = body.get("response_format", {"type": "text"})
        schema = function["parameters"] if function else form.get("json_schema", {}).get("schema")
        said = next((text for phrase, text in self._said.items() if phrase in last.lower()), None)
        if is_wrong:
            text = _WRONG
        elif said is not None:
            text = said
        elif schema is not None:
            text = json.dumps(fill(schema, last), ensure_ascii=False)
        else:
            text = "{}" if form["type"] == "json_object" else f"Entendido: {last[:60]}"
        return _Said(text, function and function["name"])


class _Said(NamedTuple):
    text: str
    function: str | None

    def message(self, text: str) -> dict[str, Any]:
        """As plain content, or as the arguments of a function."""
        base: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if self.function is None:
            return base
        call = {"name": self.function, "arguments": text}
        calls = [{"id": "call_1", "type": "function", "function": call}]
        return {**base, "content": None, "tool_calls": calls}


def _forced(body: Mapping[str, Any]) -> Any:
    """The function that must be called; None if none must."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return None
    functions = [one["function"] for one in body["tools"]]
    return next(one for one in functions if one["name"] == choice["function"]["name"])


async def _hear(request: Request, is_wrong: bool) -> Reply:
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise Refusal(400, "Could not parse multipart form.")
    try:
        async with request.form() as form:
            return await _transcribed(form, is_wrong)
    except HTTPException:
        raise Refusal(400, "Could not parse multipart form.") from None


async def _transcribed(form: FormData, is_wrong: bool) -> Reply:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Refusal(400, "Missing required parameter: 'file'.", param="file")
    model = check_model(form.get("model"), SPEECH_MODELS)
    sound = _checked(await file.read(), file.filename or "")
    text = "…" if is_wrong else sound.text
    kind, language = form.get("response_format", "json"), form.get("language")
    detail = {"model": model, "seconds": sound.seconds}
    response = _spoken_answer(text, sound, kind, language)
    return Reply(response=response, subject=model, detail=detail)


def _checked(audio: bytes, name: str) -> Heard:
    if len(audio) > _MOST_AUDIO:
        raise Refusal(413, f"Maximum content size limit ({_MOST_AUDIO}) exceeded.")
    sound = heard(audio) if name.rpartition(".")[2].lower() in FORMATS else None
    if sound is None:
        raise Refusal(400, f"Invalid file format. Supported formats: {list(FORMATS)}")
    if sound.seconds < 0.1:
        words = "Audio file is too short. Minimum audio length is 0.1 seconds."
        raise Refusal(400, words, param="file", code="audio_too_short")
    return sound


def _spoken_answer(text: str, sound: Heard, form: Any, language: Any) -> Response:
    usage = {"type": "duration", "seconds": -int(-sound.seconds // 1)}
    if form == "text":
        return PlainTextResponse(f"{text}\n")
    if form == "json":
        return JSONResponse({"text": text, "usage": usage})
    if form != "verbose_json":
        words = "Invalid value for 'response_format'."
        raise Refusal(400, words, param="response_format", code="invalid_value")
    segment = {
        "id": 0,
        "start": 0.0,
        "end": sound.seconds,
        "text": text,
        "avg_logprob": _UNCLEAR if "(inaudible)" in text else _CLEAR,
        "no_speech_prob": 0.0 if text else 0.9,
    }
    spoken_in = "english" if language == "en" else "spanish"
    whole = {"task": "transcribe", "language": spoken_in, "duration": sound.seconds, "text": text}
    return JSONResponse({**whole, "segments": [segment] if text else [], "usage": usage})


async def _json(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise Refusal(415, "Unsupported content type.", code="unsupported_content_type")
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError):
        raise Refusal(400, "We could not parse the JSON body of your request.") from None
