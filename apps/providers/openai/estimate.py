"""What a call uses at most, for `upstream.call(estimate=…)`, where that differs much from the usual
estimate: a long conversation, a long recording."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

_PER_MESSAGE: Final = 16
"""Tokens for the role of a message and what separates it from the next: more than there are."""


def chat_estimate(texts: Iterable[str], *, model: str, max_tokens: int) -> dict[str, int]:
    """Of a chat with these messages. A token has at least one byte, and about four in Spanish."""
    sizes = [len(one.encode()) + _PER_MESSAGE for one in texts]
    return {f"{model}.input": sum(sizes), f"{model}.output": max_tokens}


def speech_estimate(seconds: float, *, model: str = "whisper-1") -> dict[str, int]:
    """Of a recording of this length."""
    return {f"{model}.minute": minutes(seconds)}


def minutes(seconds: float) -> int:
    """Minutes that were begun: OpenAI counts seconds, so a sum is never less than the bill."""
    return max(1, math.ceil(seconds / 60))
