"""Where a person may end a refusal sooner, jobs look again after a minute."""

from __future__ import annotations

import pytest

from faena import UpstreamUnavailable
from faena.worker.execute.admission import wait_of

HOUR = 3_600_000_000


@pytest.mark.parametrize("reason", ["panic", "budget", "tenant_budget", "total_budget"])
def test_what_a_person_may_end_is_asked_for_each_minute(reason: str) -> None:
    assert wait_of(UpstreamUnavailable("ai", reason, HOUR)) == 60_000_000


@pytest.mark.parametrize("reason", ["open", "rate_limited", "limit"])
def test_other_waits_are_as_long_as_they_are(reason: str) -> None:
    assert wait_of(UpstreamUnavailable("ai", reason, HOUR)) == HOUR
