"""The leases a worker holds, and how long it keeps them."""

from __future__ import annotations

import time

from faena.engine.scripts import Settlement
from faena.outcomes import COMPLETED
from faena.worker.leases import Leases


def test_a_handler_whose_time_is_over_is_not_renewed_any_more() -> None:
    leases, now = Leases(), time.monotonic()
    leases.take("mail", "lease", [("stuck", now - 0.001), ("at work", now + 3600)])
    assert leases.to_renew() == {"mail": [("at work", "lease")]}
    assert leases.lease_of("mail", "stuck") == "lease"  # it may still end, and be settled


def test_the_end_of_an_older_lease_leaves_the_newer_one() -> None:
    leases, later = Leases(), time.monotonic() + 3600
    leases.take("mail", "old", [("job", later)])
    leases.take("mail", "new", [("job", later)])
    leases.end("mail", "job", "old")
    leases.settled("mail", [Settlement("job", "old", COMPLETED)])
    assert leases.to_renew() == {"mail": [("job", "new")]}
    leases.end("mail", "job", "new")
    assert len(leases) == 0
