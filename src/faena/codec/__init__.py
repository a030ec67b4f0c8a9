"""Typed payloads and results as compact JSON, exact in both directions.

`codec_for(annotation)` chooses a codec once, when a task is registered; encoding and decoding then
run in C. Encoding checks itself: the bytes are decoded again and compared with the given value. So
values that JSON would change (NaN, a set without a type, a key that is not a string) are refused at
enqueue, not found later in a worker. Only if something is wrong is the value walked in Python, to
name all bad fields together. Size limits and encryption are not part of this module.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

from faena.codec.base import Codec, of_result
from faena.codec.plain import PlainCodec
from faena.codec.type_hint import is_anything, mentions_pydantic
from faena.codec.typed import TypedCodec
from faena.errors import ConfigError

__all__ = ["Codec", "codec_for", "of_result"]

T = TypeVar("T")


@overload
def codec_for(annotation: type[T]) -> Codec[T]: ...
@overload
def codec_for(annotation: Any) -> Codec[Any]: ...
def codec_for(annotation: Any) -> Codec[Any]:
    """The codec of a type: JSON types, dataclasses, TypedDicts, msgspec structs, pydantic models.

    An annotation that cannot be a payload, such as an open socket, raises ConfigError.
    """
    if is_anything(annotation):
        return PlainCodec()
    try:
        return _model_codec(annotation) if mentions_pydantic(annotation) else TypedCodec(annotation)
    except NameError as error:
        raise ConfigError(
            f"payload type must use defined names only, got {annotation}: {error}",
            field="payload type",
            value=annotation,
        ) from None


def _model_codec(annotation: Any) -> Codec[Any]:
    try:  # imported late, because pydantic is optional
        from faena.codec.model import ModelCodec  # noqa: PLC0415
    except ImportError:
        raise ConfigError(
            f"payload type must not use pydantic, which is not installed, got {annotation}",
            field="payload type",
            value=annotation,
        ) from None
    return ModelCodec(annotation)
