"""Payloads without a type: values that JSON represents exactly."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from faena.codec.base import Codec, refusal
from faena.codec.problem import plain_problems, problem_of

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class PlainCodec(Codec[Any]):
    """None, booleans, integers of any size, finite floats, strings, lists and dicts of these."""

    def encode(self, value: Any) -> bytes:
        try:
            raw = _encode(value)
            if _decode(raw) == value:
                return raw
        except (TypeError, ValueError) as error:
            raise refusal(
                "encode", "JSON", [*plain_problems(value)] or [problem_of(error)]
            ) from None
        except RecursionError:
            raise refusal("encode", "JSON", [("$", "is nested too deeply")]) from None
        problems = [*plain_problems(value)] or [("$", "changes when it is encoded and decoded")]
        raise refusal("encode", "JSON", problems)

    def decode(self, raw: bytes | msgspec.Raw) -> Any:
        try:
            return _decode(raw)
        except ValueError as error:
            raise refusal("decode", "JSON", [problem_of(error)]) from None
        except RecursionError:
            raise refusal("decode", "JSON", [("$", "is nested too deeply")]) from None
