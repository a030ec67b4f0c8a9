"""What OpenAI accepts, and the words with which it refuses the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from apps.sandbox.stand_in import Refused

CHAT_MODELS: Final = ("gpt-4-turbo", "gpt-4", "gpt-3.5-turbo", "gpt-4o", "gpt-4o-mini")
SPEECH_MODELS: Final = ("whisper-1",)
SCHEMA_MODELS: Final = ("gpt-4o", "gpt-4o-mini")
JSON_MODELS: Final = (*SCHEMA_MODELS, "gpt-4-turbo", "gpt-3.5-turbo")
FORMATS: Final = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_FIELDS: Final = frozenset({
    "frequency_penalty", "logprobs", "max_completion_tokens", "max_tokens", "messages", "metadata",
    "model", "n", "parallel_tool_calls", "presence_penalty", "reasoning_effort", "response_format",
    "seed", "service_tier", "stop", "store", "stream", "temperature", "tool_choice", "tools",
    "top_p", "user",
})  # fmt: skip
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Refusal(Refused):
    """An answer of 4xx, in OpenAI's format."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.status, self.code = status, code
        error = {"message": message, "type": kind, "param": param, "code": code}
        self.body: dict[str, Any] = {"error": error}

    @property
    def response(self) -> Response:
        """The answer."""
        return JSONResponse(self.body, self.status)

    @property
    def detail(self) -> dict[str, Any]:
        """Status and code."""
        return {"status": self.status, "code": self.code}


def check_key(header: str | None, key: str) -> None:
    """A bearer token, and the right one."""
    kind, _, given = (header or "").partition(" ")
    if kind != "Bearer" or not given:
        raise Refusal(401, "You didn't provide an API key.")
    if given != key:
        shown = f"{given[:3]}***{given[-4:]}"
        raise Refusal(401, f"Incorrect API key provided: {shown}.", code="invalid_api_key")


def check_model(model: Any, known: tuple[str, ...]) -> str:
    """One of those that this service has."""
    if not isinstance(model, str) or not model:
        raise Refusal(400, "you must provide a model parameter")
    if model not in known:
        words = f"The model `{model}` does not exist or you do not have access to it."
        raise Refusal(404, words, code="model_not_found")
    return model


def check_chat(body: Any) -> dict[str, Any]:
    """A request for a chat."""
    if not isinstance(body, dict):
        raise Refusal(400, "We could not parse the JSON body of your request.")
    if unknown := sorted(set(body) - _FIELDS):
        words = f"Unknown parameter: '{unknown[0]}'."
        raise Refusal(400, words, param=unknown[0], code="unknown_parameter")
    model = check_model(body.get("model"), CHAT_MODELS)
    _check_messages(body.get("messages"))
    _check_numbers(body)
    if body.get("stream") or body.get("n", 1) != 1:
        raise Refusal(400, "This stand-in gives one answer, and no stream.", param="stream")
    _check_format(body.get("response_format", {"type": "text"}), model, body["messages"])
    _check_tools(body)
    return body


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list):
        words = "Missing required parameter: 'messages'."
        raise Refusal(400, words, param="messages", code="missing_required_parameter")
    if not messages:
        words = "Invalid 'messages': empty array."
        raise Refusal(400, words, param="messages", code="empty_array")
    for i, one in enumerate(messages):
        if not isinstance(one, dict) or one.get("role") not in _ROLES:
            at = f"messages[{i}].role"
            raise Refusal(400, f"Invalid value for '{at}'.", param=at, code="invalid_value")
        if not isinstance(one.get("content"), str):
            at = f"messages[{i}].content"
            raise Refusal(400, f"Invalid type for '{at}'.", param=at, code="invalid_type")


def _check_numbers(body: Mapping[str, Any]) -> None:
    temperature = body.get("temperature", 1)
    if not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        words = "Invalid 'temperature': expected a number from 0 to 2."
        raise Refusal(400, words, param="temperature", code="invalid_value")
    given = [name for name in ("max_tokens", "max_completion_tokens") if name in body]
    if len(given) > 1:
        raise Refusal(400, "Setting 'max_tokens' and 'max_completion_tokens' is not supported.")
    for name in given:
        if type(body[name]) is not int or body[name] < 1:
            words = f"Invalid '{name}': integer below minimum value."
            raise Refusal(400, words, param=name, code="integer_below_min_value")


def _check_format(given: Any, model: str, messages: list[dict[str, Any]]) -> None:
    kind: Any = given.get("type") if isinstance(given, dict) else None
    if kind not in ("text", "json_object", "json_schema"):
        at = "response_format.type"
        raise Refusal(400, f"Invalid value for '{at}'.", param=at, code="invalid_value")
    able = {"json_object": JSON_MODELS, "json_schema": SCHEMA_MODELS}.get(kind, CHAT_MODELS)
    if model not in able:
        words = f"Invalid parameter: 'response_format' of type '{kind}' is not supported with this "
        raise Refusal(400, f"{words}model.", param="response_format")
    if kind == "json_object" and not any("json" in one["content"].lower() for one in messages):
        words = "'messages' must contain the word 'json' in some form, to use 'response_format' of "
        raise Refusal(400, f"{words}type 'json_object'.", param="messages")
    if kind == "json_schema":
        _check_bound(given.get("json_schema"), "schema", "response_format")


def _check_tools(body: Mapping[str, Any]) -> None:
    tools = body.get("tools", [])
    if not isinstance(tools, list):
        raise Refusal(400, "Invalid type for 'tools'.", param="tools", code="invalid_type")
    for one in tools:
        if not isinstance(one, dict) or one.get("type") != "function":
            raise Refusal(400, "Invalid value for 'tools[0].type'.", param="tools[0].type")
        _check_bound(one.get("function"), "parameters", "tools[0].function")
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        function = choice.get("function")
        wanted: Any = function.get("name") if isinstance(function, dict) else None
        if wanted not in [one["function"]["name"] for one in tools]:
            words = f"Tool choice '{wanted}' not found in 'tools' parameter."
            raise Refusal(400, words, param="tool_choice")


def _check_bound(bound: Any, where: str, param: str) -> None:
    """A name and a schema, which `strict` holds to its rules."""
    if not isinstance(bound, dict) or not isinstance(bound.get(where), dict):
        words = f"Missing required parameter: '{param}.{where}'."
        raise Refusal(400, words, param=param, code="missing_required_parameter")
    name: Any = bound.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Refusal(400, f"Invalid '{param}.name'.", param=param, code="invalid_value")
    if bound.get("strict"):
        fault = "schema must be a JSON Schema of 'type: \"object\"'"
        is_object = bound[where].get("type") == "object"
        if fault := strict_fault(bound[where], ()) if is_object else fault:
            raise Refusal(400, f"Invalid schema for '{name}': {fault}", param=param)


def strict_fault(node: Any, at: tuple[str, ...]) -> str:
    """What strict mode does not accept in a schema; empty if nothing."""
    if isinstance(node, list):
        return next(filter(None, (strict_fault(one, at) for one in node)), "")
    if not isinstance(node, dict):
        return ""
    if "default" in node:
        return f"In context={at}, 'default' is not permitted."
    properties = node.get("properties")
    if node.get("type") == "object" or properties is not None:
        if node.get("additionalProperties") is not False:
            return f"In context={at}, 'additionalProperties' is required to be false."
        if sorted(node.get("required", [])) != sorted(properties or {}):
            return f"In context={at}, 'required' must include every key in properties."
    named = {**(properties or {}), **node.get("$defs", {})}
    deeper = list(named.items())
    deeper += [(name, node[name]) for name in ("items", "anyOf") if name in node]
    return next(filter(None, (strict_fault(part, (*at, name)) for name, part in deeper)), "")
