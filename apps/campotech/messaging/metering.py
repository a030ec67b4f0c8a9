"""What calls to OpenAI have used, also those that did not end well."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from apps.providers.openai import OpenAIError
from faena import Upstream

Spend = Callable[[Mapping[str, int]], None]


@asynccontextmanager
async def metered(upstream: Upstream, **options: Any) -> AsyncGenerator[Spend]:
    """A call; an answer that cannot be used is paid for all the same."""
    async with upstream.call(**options) as call:
        told: list[Mapping[str, int]] = []

        def spend(items: Mapping[str, int]) -> None:
            told.append(items)
            call.spend(items)

        try:
            yield spend
        except OpenAIError as error:
            if error.items and not told:
                call.spend(error.items)
            raise
