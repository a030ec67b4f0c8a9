"""A worker that looks goes on from page to page of the breakers in trouble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from faena.engine.calls import resilience
from faena.engine.calls.resilience import Swept
from faena.resilience.breaker_timer import BreakerTimer


async def test_a_look_visits_page_after_page(monkeypatch: pytest.MonkeyPatch) -> None:
    visited: list[str] = []

    async def sweep(_engine: Any, _scopes: Sequence[str], cursor: str = "") -> Swept:
        visited.append(cursor)
        return Swept({"0": "7", "7": "3", "3": "0"}[cursor], [])

    monkeypatch.setattr(resilience, "sweep", sweep)
    await BreakerTimer(cast("Any", None), ["afip"])._look()
    assert visited == ["0", "7", "3"]
