"""What nobody has foreseen is told like any other problem, and says nothing of what happened."""

from __future__ import annotations

from uuid import uuid4

import httpx
import pytest
from apps.campotech.system import System


async def test_a_fault_of_ours_is_a_problem_without_its_reason(
    api: httpx.AsyncClient, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_given: object) -> None:
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(system.completing, "complete", fail)
    answer = await api.post(f"/api/v1/jobs/{uuid4()}/complete", json={})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["title"] == "Our fault"
    assert "swordfish" not in answer.text
