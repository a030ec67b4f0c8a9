"""The figures that the five documents of the specification ask for.

Those that no scenario can measure are listed with the reason, so that nobody looks for them.
"""

from __future__ import annotations

from typing import Final

from apps.load.figure import Figure, Goal

# -- degradation ----------------------------------------------------------------------------------
HEALTH_ANSWERS: Final = Goal("health answers 200 or 503", "004 §9.1.3", 100, "%", is_most=False)
HEALTH_TIME: Final = Goal("health, p95", "004 §9.1.3", 1000, "ms")
INVOICE_TAKEN: Final = Goal(
    "invoices accepted while AFIP is down", "004 §9.1.3", 100, "%", is_most=False
)
# -- partitions -----------------------------------------------------------------------------------
RECENT_JOBS: Final = Goal("recent jobs, p95", "004 §9.1.4", 200, "ms")
HISTORICAL_JOBS: Final = Goal("historical jobs, p95", "004 §9.1.4", 2000, "ms")
DASHBOARD: Final = Goal("dashboard query on a roll-up, p95", "001 §3.3", 100, "ms")
ROLLUP: Final = Goal("roll-up of a day", "001 §3.3", 120, "s")
# -- stress ---------------------------------------------------------------------------------------
COMPLETION_TAKEN: Final = Goal("completions accepted", "004 §9.1.5", 100, "%", is_most=False)
COMPLETION_TIME: Final = Goal("completion answered, p95", "004 §9.1.5", 500, "ms")
NO_CRITICAL: Final = Goal("queues that are critical", "004 §9.1.5", 1, "queues")
JOBS_A_MINUTE: Final = Goal("jobs ended per minute", "001 §Conclusion", 1000, "/min", is_most=False)
STRESS_ERRORS: Final = Goal("failed attempts", "000 §10.2, 003 §Monitoring", 5, "%")
BROKER_TIME: Final = Goal("broker round trip, p95", "002 §Performance Targets", 10, "ms")
# -- notifications --------------------------------------------------------------------------------
PUSH_TIME: Final = Goal("push delivered, p95", "004 §5B.1.1", 5, "s")
PUSH_BESIDE: Final = Goal("push beside a noisy organisation, p95", "004 §5B.1.1", 5, "s")
BACKGROUND_START: Final = Goal("near-realtime work starts, p95", "004 §5B.1.1", 60, "s")
MESSAGE_TIME: Final = Goal("WhatsApp message delivered, p95", "001 §3.1", 10, "s")
INBOUND_TIME: Final = Goal("message processed, p95", "002 §Performance Targets", 5, "s")
CAMPAIGN_RATE: Final = Goal(
    "messages of a campaign", "002 §Performance Targets", 100, "/min", is_most=False
)

_OTHER_SYSTEM: Final = "of another system than CampoTech"
ELSEWHERE: Final = tuple(
    Figure(goal=goal, measured=None, note=why)
    for goal, why in (
        (Goal("lead at Mailchimp", "001 §3.1", 5, "s"), _OTHER_SYSTEM),
        (Goal("lead.created, p95", "001 §3.1", 30, "s"), _OTHER_SYSTEM),
        (Goal("campaign.sync of 100 campaigns", "001 §3.2", 300, "s"), _OTHER_SYSTEM),
        (Goal("llm.ingest", "001 §3.5", 90, "s"), "takes a real model"),
        (Goal("extraction from PDFs is right", "001 §3.5", 90, "%", is_most=False),
         "takes a real model"),
    )
)  # fmt: skip
