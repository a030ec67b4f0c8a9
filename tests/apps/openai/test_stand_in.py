"""The stand-in accepts what OpenAI accepts, and refuses the rest in its words."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from apps.sandbox.openai import OpenAI, spoken

HELLO = [{"role": "user", "content": "hola"}]
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
STRICT = {**OPEN, "additionalProperties": False, "required": ["a"]}


def schema(inner: dict[str, Any], **more: Any) -> dict[str, Any]:
    bound = {"name": "job", "strict": True, "schema": inner, **more}
    return {"type": "json_schema", "json_schema": bound}


async def post(service: OpenAI, key: str, body: Any, **more: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"} | more.pop("headers", {})
    async with httpx.AsyncClient(base_url=service.url) as http:
        return await http.post("/v1/chat/completions", json=body, headers=headers, **more)


def chat(**more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": HELLO, **more}


async def test_a_good_request_is_answered_as_openai_does(service: OpenAI, key: str) -> None:
    response = await post(service, key, chat(response_format=schema(STRICT)))
    body = response.json()
    assert response.status_code == 200
    assert response.headers["x-request-id"]
    assert (body["object"], body["model"]) == ("chat.completion", "gpt-4o-2024-04-09")
    assert body["choices"][0]["message"]["content"] == '{"a": ""}'
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] == 8


REFUSED: dict[str, tuple[Any, int, str | None, str | None]] = {
    "not an object": ([], 400, None, None),
    "no model": ({"messages": HELLO}, 400, None, None),
    "an unknown model": (chat(model="gpt-9"), 404, None, "model_not_found"),
    "no messages": ({"model": "gpt-4"}, 400, "messages", "missing_required_parameter"),
    "empty messages": (chat(messages=[]), 400, "messages", "empty_array"),
    "a wrong role": (
        chat(messages=[{"role": "boss", "content": ""}]), 400, "messages[0].role", "invalid_value",
    ),
    "no content": (
        chat(messages=[{"role": "user"}]), 400, "messages[0].content", "invalid_type",
    ),
    "an unknown field": (chat(max_token=1), 400, "max_token", "unknown_parameter"),
    "too hot": (chat(temperature=3), 400, "temperature", "invalid_value"),
    "no tokens": (
        chat(max_completion_tokens=0), 400, "max_completion_tokens", "integer_below_min_value",
    ),
    "two limits": (chat(max_tokens=1, max_completion_tokens=1), 400, None, None),
    "a stream": (chat(stream=True), 400, "stream", None),
    "a wrong format": (
        chat(response_format={"type": "xml"}), 400, "response_format.type", "invalid_value",
    ),
    "a format that is none": (
        chat(response_format=7), 400, "response_format.type", "invalid_value",
    ),
    "a schema of an old model": (
        chat(model="gpt-4-turbo", response_format=schema(STRICT)), 400, "response_format", None,
    ),
    "JSON mode of an older model": (
        chat(model="gpt-4", response_format={"type": "json_object"}), 400, "response_format", None,
    ),
    "JSON mode without the word": (
        chat(response_format={"type": "json_object"}), 400, "messages", None,
    ),
    "no schema": (
        chat(response_format={"type": "json_schema"}), 400, "response_format",
        "missing_required_parameter",
    ),
    "a schema with a wrong name": (
        chat(response_format=schema(STRICT, name="a b")), 400, "response_format", "invalid_value",
    ),
    "an open schema": (chat(response_format=schema(OPEN)), 400, "response_format", None),
    "a schema with a default": (
        chat(response_format=schema({**STRICT, "default": 1})), 400, "response_format", None,
    ),
    "an open object inside": (
        chat(response_format=schema({**STRICT, "properties": {"a": {"anyOf": [OPEN]}}})), 400,
        "response_format", None,
    ),
    "a list as a schema": (
        chat(response_format=schema({"type": "array"})), 400, "response_format", None,
    ),
    "tools that are none": (chat(tools=7), 400, "tools", "invalid_type"),
    "a choice that is no tool": (
        chat(tool_choice={"type": "function", "function": {"name": "f"}}), 400, "tool_choice", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
async def test_a_wrong_request_is_refused(what: str, service: OpenAI, key: str) -> None:
    body, status, param, code = REFUSED[what]
    response = await post(service, key, body)
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (response.status_code, error["param"], error["code"]) == (status, param, code)
    assert [one.outcome for one in service.ledger.entries] == ["refused"]


@pytest.mark.parametrize(
    ("header", "code"),
    [("", None), ("Basic eDp5", None), ("Bearer", None), ("Bearer sk-wrong", "invalid_api_key")],
)
async def test_a_wrong_key_is_refused(
    header: str, code: str | None, service: OpenAI, key: str
) -> None:
    response = await post(service, key, chat(), headers={"authorization": header})
    assert (response.status_code, response.json()["error"]["code"]) == (401, code)
    assert key not in response.text


async def test_a_body_that_is_no_json_is_refused(service: OpenAI, key: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    url = f"{service.url}/v1/chat/completions"
    async with httpx.AsyncClient(headers=headers) as http:
        for content in (b"{", b"\xff", b"[" * 100_000):
            as_json = {"content-type": "application/json"}
            response = await http.post(url, content=content, headers=as_json)
            assert response.status_code == 400
        assert (await http.post(url, data={"model": "gpt-4"})).status_code == 415


async def test_json_mode_is_answered_with_json(service: OpenAI, key: str) -> None:
    asked = [{"role": "user", "content": "Contestá en JSON"}]
    body = chat(model="gpt-4-turbo", messages=asked, response_format={"type": "json_object"})
    response = await post(service, key, body)
    assert response.json()["choices"][0]["message"]["content"] == "{}"


SPEECH = {"model": "whisper-1", "response_format": "verbose_json"}


@pytest.mark.parametrize(
    ("data", "file", "status"),
    [
        (SPEECH, ("a.wav", spoken("hola")), 200),
        (SPEECH, ("a.ogg", spoken("hola")), 200),
        ({"model": "whisper-1"}, ("a.wav", spoken("hola")), 200),
        ({**SPEECH, "response_format": "text"}, ("a.wav", spoken("hola")), 200),
        ({**SPEECH, "response_format": "vinyl"}, ("a.wav", spoken("hola")), 400),
        ({**SPEECH, "model": "gpt-4"}, ("a.wav", spoken("hola")), 404),
        ({"response_format": "json"}, ("a.wav", spoken("hola")), 400),
        (SPEECH, ("a.txt", spoken("hola")), 400),
        (SPEECH, ("a.wav", b"RIFF\0\0\0\0WAVE"), 400),
        (SPEECH, ("a.wav", spoken("hola")[:40]), 400),
        (SPEECH, ("a.wav", spoken("hola", 0.05)), 400),
        (SPEECH, ("a.wav", spoken("", 25 * 2**20 / 8000)), 413),
        (SPEECH, None, 400),
    ],
)
async def test_recordings_are_checked(
    data: dict[str, str], file: tuple[str, bytes] | None, status: int, service: OpenAI, key: str
) -> None:
    headers = {"authorization": f"Bearer {key}"}
    url = f"{service.url}/v1/audio/transcriptions"
    async with httpx.AsyncClient(headers=headers) as http:
        response = await http.post(url, data=data, files={"file": file} if file else None)
    assert response.status_code == status
    assert ("hola" in response.text) == (status == 200)
    (entry,) = service.ledger.entries
    assert entry.outcome == ("ok" if status == 200 else "refused")


async def test_a_broken_form_is_refused(service: OpenAI, key: str) -> None:
    headers = {"authorization": f"Bearer {key}", "content-type": "multipart/form-data"}
    url = f"{service.url}/v1/audio/transcriptions"
    async with httpx.AsyncClient(headers=headers) as http:
        response = await http.post(url, content=b"--x\r\n")
    assert response.status_code == 400
