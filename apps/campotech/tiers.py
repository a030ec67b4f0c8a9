"""Three promises of speed, and which of them each kind of work has.

A tier says how soon work starts and how stubbornly it is tried; the queue says how much of it may
run. `DISPATCH` maps the names that the web application uses to a queue, a task and a tier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from apps.campotech.pace import Pace
from faena import Priority, Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A promise."""

    name: str
    objective: str | None
    """Work starts within this time; None: minutes to hours."""
    slots: int
    attempts: int
    base: str
    """The first pause between attempts; each further one is twice as long."""
    priority: Priority
    keep_completed: int
    keep_dead: int

    def retry(self, pace: Pace) -> Retry:
        """How its jobs are tried again."""
        return Retry.exponential(
            base=pace.of(self.base), factor=2, floor=pace.of("1s"), attempts=self.attempts
        )


REALTIME: Final = Tier(
    name="realtime",
    objective="5s",
    slots=10,
    attempts=3,
    base="1s",
    priority=Priority.HIGH,
    keep_completed=100,
    keep_dead=1000,
)
BACKGROUND: Final = Tier(
    name="background",
    objective="60s",
    slots=5,
    attempts=5,
    base="2s",
    priority=Priority.NORMAL,
    keep_completed=100,
    keep_dead=1000,
)
BATCH: Final = Tier(
    name="batch",
    objective=None,
    slots=2,
    attempts=10,
    base="5s",
    priority=Priority.LOW,
    keep_completed=50,
    keep_dead=500,
)
TIERS: Final = (REALTIME, BACKGROUND, BATCH)


class Kind(NamedTuple):
    """A kind of work."""

    queue: str
    task: str
    tier: Tier


DISPATCH: Final[dict[str, Kind]] = {
    "whatsapp:respond": Kind("whatsapp.inbound", "respond", REALTIME),
    "notification:push": Kind("job.notification", "push", REALTIME),
    "voice:transcribe": Kind("voice.transcription", "transcribe_recording", BACKGROUND),
    "notification:sms": Kind("job.notification", "sms", BACKGROUND),
    "notification:email": Kind("job.notification", "email", BACKGROUND),
    "rating:request": Kind("job.notification", "ask_rating", BACKGROUND),
    "invoice:generate": Kind("invoice.pdf", "generate", BATCH),
    "invoice:afip-submit": Kind("afip.invoice", "request_cae", BATCH),
    "report:generate": Kind("scheduler", "weekly_report", BATCH),
    "analytics:calculate": Kind("analytics", "calculate", BATCH),
    "archive:process": Kind("cleanup", "archive", BATCH),
}
