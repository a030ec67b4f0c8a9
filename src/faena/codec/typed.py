"""Payloads of a type that msgspec reads: structs, dataclasses, TypedDicts, typed containers."""

from __future__ import annotations

from typing import Any

import msgspec

from faena.codec.base import Codec, Problem, refusal
from faena.codec.problem import problem_of, typed_problems
from faena.codec.strict_schema import strict_schema
from faena.codec.type_hint import class_of, name_of, unsupported
from faena.errors import ConfigError, PayloadError


class TypedCodec(Codec[Any]):
    """Encodes instances of the type; plain data is converted to an instance first.

    So an instance and an equivalent dict have the same bytes, including defaults.
    """

    def __init__(self, annotation: Any) -> None:
        self._type = annotation
        self._name = name_of(annotation)
        self._class = class_of(annotation)
        self._encode = msgspec.json.Encoder().encode
        self._decode = _decoder(annotation, self._name)

    def encode(self, value: Any) -> bytes:
        try:
            if self._class is None or isinstance(value, self._class):
                raw = self._encode(value)
                if self._decode(raw) == value:
                    return raw
            given = msgspec.convert(value, self._type, str_keys=True)
            raw = self._encode(given)
            if self._decode(raw) == given:
                return raw
        except (TypeError, ValueError, RecursionError) as error:
            raise self._refusal("encode", value, error) from None
        # A class without its own equality also gets here, so inequality alone is not a fault.
        problems = typed_problems(self._type, given)
        if problems:
            raise refusal("encode", self._name, problems)
        return raw

    def decode(self, raw: bytes | msgspec.Raw) -> Any:
        try:
            return self._decode(raw)
        except (ValueError, RecursionError) as error:
            raise self._undecodable(raw, error) from None

    def schema(self) -> dict[str, Any] | None:
        """That of its type; None where a part of it has none."""
        try:
            return strict_schema(self._type)
        except TypeError:
            return None

    def _undecodable(self, raw: bytes, error: Exception) -> PayloadError:
        try:
            tree = msgspec.json.decode(raw)
        except (ValueError, RecursionError) as malformed:
            return refusal("decode", self._name, [_problem(malformed)])
        return self._refusal("decode", tree, error)

    def _refusal(self, op: str, value: Any, error: Exception) -> PayloadError:
        try:
            problems = typed_problems(self._type, value)
        except RecursionError as deep:
            problems = [_problem(deep)]
        return refusal(op, self._name, problems or [_problem(error)])


def _problem(error: Exception) -> Problem:
    if isinstance(error, RecursionError):
        return "$", "is nested too deeply"
    return problem_of(error)


def _decoder(annotation: Any, name: str) -> Any:
    try:
        decoder = msgspec.json.Decoder(annotation)
        stranger = unsupported(annotation)
    except TypeError as error:
        raise ConfigError(
            f"payload type must be a type that JSON can represent, got {name}: {error}",
            field="payload type",
            value=annotation,
        ) from None
    if stranger is not None:
        raise ConfigError(
            "payload type must be made of JSON types, dataclasses, TypedDicts, msgspec structs or "
            f"pydantic models, got {name_of(stranger)} in {name}",
            field="payload type",
            value=annotation,
        )
    return decoder.decode
