"""Which fields of a payload are refused, and why."""

from __future__ import annotations

from typing import Any

import pytest

from faena.codec import codec_for
from faena.errors import PayloadError


def refused_fields(annotation: Any, value: Any) -> dict[str, str]:
    with pytest.raises(PayloadError) as refused:
        codec_for(annotation).encode(value)
    return dict(refused.value.fields)
