"""A WhatsApp service: messages that come in, campaigns that go out, reminders before a booking.

    faena worker examples.aurora:app             run the jobs
    faena queues examples.aurora:app             see what is going on
    faena clean examples.aurora:app --age 7d     remove old jobs
    faena retry-failed examples.aurora:app       run what died once more
    uvicorn examples.aurora:api                  serve the API

`python -m examples.aurora` needs no web server: it sends the API a small day and prints it.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx
from fastapi import FastAPI, Response
from pydantic import BaseModel, Field

from faena import Death, Discard, Faena, Job, Limit, Retain, Retry
from faena.contrib.starlette import exception_handlers, lifespan

app = Faena("aurora")
KEPT = Retain(dead="7d")

messages = app.queue(
    "message", priority=1, concurrency=5, retry=Retry.exponential(base="2s"), retain=KEPT
)
campaigns = app.queue(
    "campaign",
    priority=5,
    concurrency=5,
    limits=[Limit("100/min")],
    retry=Retry.exponential(base="5s", attempts=2),
    retain=KEPT,
)
automations = app.queue(
    "automation", priority=3, concurrency=5, retry=Retry.exponential(attempts=2), retain=KEPT
)


class Message(BaseModel):
    id: str
    organization: str
    sender: str
    content: str = Field(max_length=4096)


class Campaign(BaseModel):
    id: str
    organization: str
    recipients: list[str] = Field(min_length=1)
    template: str


class Reminder(BaseModel):
    booking: str
    organization: str
    to: str
    starts_at: datetime


@messages.task
async def process_message(message: Message) -> str:
    if not message.content:
        raise Discard("nothing to answer")
    return f"answered {message.sender}"


@process_message.on_dead
async def tell_the_owner(death: Death) -> None:
    print(f"message {death.job_id} of {death.tenant} died: {death.error and death.error.message}")


@campaigns.task
async def send(to: str, job: Job) -> str:
    return f"{job.headers['template']} to {to}"


@campaigns.task
async def report(campaign: str, job: Job) -> None:
    print(f"campaign {campaign}: {job.group['completed']} of {job.group['total']} sent")


@automations.task
async def send_reminder(reminder: Reminder) -> None:
    print(f"{reminder.to} was reminded of {reminder.booking}")


# A full queue is a 429 with Retry-After, a broker that is away a 503.
api = FastAPI(lifespan=lifespan(app), exception_handlers=exception_handlers())


@api.post("/messages", status_code=202)
async def receive(message: Message) -> dict[str, str]:
    """WhatsApp repeats a message until it is acknowledged: its own id makes that one job."""
    receipt = await process_message.enqueue(message, id=message.id, tenant=message.organization)
    return {"job": receipt.id, "status": receipt.status}


@api.post("/campaigns", status_code=202)
async def start(campaign: Campaign) -> dict[str, str]:
    """A job for each recipient; organisations take turns, and the rate is that of all."""
    async with app.group(on_complete=report.draft(campaign.id), id=campaign.id) as group:
        sent = {"tenant": campaign.organization, "headers": {"template": campaign.template}}
        await group.enqueue_many(send, campaign.recipients, **sent)
    return {"group": group.id}


@api.post("/reminders", status_code=202)
async def remind(reminder: Reminder) -> dict[str, str | None]:
    """A day before the booking. Moving the booking moves its reminder, and none comes too late."""
    receipt = await send_reminder.enqueue(
        reminder,
        tenant=reminder.organization,
        at=reminder.starts_at - timedelta(days=1),
        expires=reminder.starts_at,
        replace=f"reminder-{reminder.booking}",
    )
    return {"job": receipt.id, "replaced": receipt.replaced}


@api.get("/health/redis")
async def health(response: Response) -> dict[str, bool]:
    found = await app.health()
    response.status_code = 200 if found.is_ok else 503
    return {"ok": found.is_ok}


async def main() -> None:
    transport, soon = httpx.ASGITransport(api), datetime.now(UTC) + timedelta(hours=2)
    booking = {"booking": "b-1", "organization": "aurora", "to": "eva", "starts_at": str(soon)}
    message = {"id": "wamid.1", "organization": "aurora", "sender": "ana", "content": ""}
    people = {"id": "spring", "organization": "aurora", "recipients": ["leo", "mia"]}
    async with (
        api.router.lifespan_context(api),
        httpx.AsyncClient(transport=transport, base_url="http://aurora") as client,
    ):
        for path, body in (
            ("/messages", message),
            ("/campaigns", people | {"template": "spring-sale"}),
            ("/reminders", booking),
        ):
            print(path, (await client.post(path, json=body)).status_code)
        print("/health/redis", (await client.get("/health/redis")).json())
        await app.run_worker(until_empty=True)


if __name__ == "__main__":
    asyncio.run(main())
