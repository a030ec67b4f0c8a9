"""An app in which something has happened, for the API to tell."""

from __future__ import annotations

from typing import Any

from faena import Faena, Retry
from faena.queue import Queue


class Busy:
    """What is there: ids by what they are."""

    def __init__(self, mail: Queue, parts: dict[str, str]) -> None:
        self.mail = mail
        self.parts = parts
        """Part of a path → a value that is there."""


async def populate(app: Faena) -> Busy:
    """A queue with tenants, jobs in several states, dead ones, a redrive, a flow and more."""
    mail = app.queue("mail", fair=True, retry=Retry.fixed("1s", attempts=1))

    @mail.task
    async def send(payload: dict[str, Any]) -> dict[str, Any]:
        if payload.get("fails"):
            raise ValueError("the printer is on fire")
        return {"sent": True, "password": "hunter2"}

    app.schedule("nightly", send, {"to": "all", "token": "secret"}, every="6h")
    app.upstream("afip")
    app.feature("invoicing")
    await app.schedules.declare()
    done = await send.enqueue({"to": "ana", "password": "hunter2"}, tenant="acme")
    dead = await send.enqueue({"fails": True}, tenant="bolt", id="dead-1")
    flow = await app.chain(send.draft({"to": "a"}), send.draft({"to": "b"})).start()
    async with app.group(on_complete=send.draft({"to": "z"})) as group:
        await group.enqueue_many(send, [{"to": "g"}])
    await app.run_worker(until_empty=True)
    redrive = await app.dead_letters.start_redrive("mail", error="Nothing")
    await send.enqueue({"to": "later"}, tenant="acme", delay="1h")
    return Busy(
        mail,
        {
            "queue": "mail",
            "job": done.id,
            "dead": dead.id,
            "tenant": "acme",
            "flow": flow.id.partition("/")[2],
            "group": group.id.partition("/")[2],
            "redrive": redrive,
            "schedule": "nightly",
            "upstream": "afip",
            "feature": "invoicing",
        },
    )
