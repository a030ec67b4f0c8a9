"""For the test suites of programs that use Faena: a real Valkey, a clock that stands still.

    async with harness(app) as h:
        await sign_up(user)
        await h.assert_enqueued(welcome, payload={"to": "ana"}, due_in="5m")
        h.clock.advance("5m")
        (await h.drain()).check()

Parts, in the order a test meets them:

    harness    points an app at the test's server, namespace and clock, and puts everything back
    server     the private Valkey that all tests of a process share
    clock      the time the broker is told
    enqueued   which jobs were expected, and what to say when they are not there
    drain      runs what is ready, here and now, with the worker's own executor
    inline     one attempt without any broker
    inputs     what that attempt finds of the jobs before it in a flow or a group
    report     what ran and how it ended
    plugin     the same as fixtures: pytest_plugins = ["faena.testing.plugin"]

Nothing is imitated: scripts, codecs, middleware and executor are those of production.
"""

from faena.testing.clock import Clock
from faena.testing.harness import Harness, SyncHarness, harness, sync_harness
from faena.testing.inline import attempt, run_inline
from faena.testing.report import Ran, Report
from faena.testing.server import shared_url

__all__ = [
    "Clock",
    "Harness",
    "Ran",
    "Report",
    "SyncHarness",
    "attempt",
    "harness",
    "run_inline",
    "shared_url",
    "sync_harness",
]
