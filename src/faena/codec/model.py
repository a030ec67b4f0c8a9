"""Payloads that pydantic reads: models, and anything that contains one."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from faena.codec.base import Codec, Problem, refusal
from faena.codec.problem import join
from faena.codec.type_hint import name_of
from faena.errors import ConfigError


class ModelCodec(Codec[Any]):
    """Uses the model's own validation, aliases and serialisers, and checks that they agree."""

    def __init__(self, annotation: Any) -> None:
        self._name = name_of(annotation)
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        except PydanticUserError as error:
            raise ConfigError(
                f"payload type must be one that pydantic can read, got {self._name}: {error}",
                field="payload type",
                value=annotation,
            ) from None

    def encode(self, value: Any) -> bytes:
        try:
            model = self._adapter.validate_python(value)
            raw = self._adapter.dump_json(model, by_alias=True, round_trip=True, warnings=False)
            back = self._adapter.validate_json(raw)
        except ValidationError as error:
            raise refusal("encode", self._name, _problems(error)) from None
        except ValueError as error:  # nothing can serialise a part of it, or it contains itself
            raise refusal("encode", self._name, [("$", _lowered(str(error)))]) from None
        if back == model or not (changed := _changed(self._data(model), self._data(back))):
            return raw
        raise refusal("encode", self._name, changed)

    def decode(self, raw: bytes | msgspec.Raw) -> Any:
        try:
            return self._adapter.validate_json(bytes(raw))  # a worker hands over a msgspec.Raw
        except ValidationError as error:
            raise refusal("decode", self._name, _problems(error)) from None

    def schema(self) -> dict[str, Any] | None:
        """That of its models; None where a part of them has none."""
        try:
            return self._adapter.json_schema(by_alias=True)
        except PydanticInvalidForJsonSchema:
            return None

    def _data(self, model: Any) -> Any:
        """Only the fields: private attributes are not encoded, so they must not be compared."""
        return self._adapter.dump_python(model, round_trip=True, warnings=False)


def _changed(given: Any, back: Any, path: str = "") -> list[Problem]:
    if given == back:
        return []
    if not isinstance(given, dict) or not isinstance(back, dict) or given.keys() != back.keys():
        return [(path or "$", "changes when it is encoded and decoded")]
    return [
        problem
        for key in given
        for problem in _changed(given[key], back[key], join(path, str(key)))
    ]


def _problems(error: ValidationError) -> list[Problem]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [(_path(one["loc"]), _lowered(one["msg"])) for one in found]


def _path(location: tuple[str | int, ...]) -> str:
    path = ""
    for part in location:
        path = join(path, part)
    return path or "$"


def _lowered(message: str) -> str:
    """As the middle of a sentence; an acronym stays one."""
    return message if message[1:2].isupper() else message[:1].lower() + message[1:]
