"""A web API that enqueues instead of making its callers wait.

    uvicorn examples.fastapi_app:api        (or any other ASGI server)

The worker runs inside the web process here; in a service leave `worker=True` out and run
`faena worker examples.fastapi_app:app` beside it. `python -m examples.fastapi_app` needs no web
server: it sends the API two requests itself and prints the answers.
"""

import asyncio

import httpx
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

from faena import Backpressure, Faena, Job
from faena.contrib.starlette import lifespan
from faena.errors import Overloaded

app = Faena("clinic")
reminders = app.queue("reminder", backpressure=Backpressure(soft=1_000, hard=5_000))
api = FastAPI(lifespan=lifespan(app, worker=True))


class Reminder(BaseModel):
    to: str = Field(min_length=1)
    visit: int


@reminders.task
async def remind(reminder: Reminder, job: Job) -> str:
    job.progress(100)
    return f"{reminder.to} knows about visit {reminder.visit}"


@api.post("/reminders", status_code=202)
async def create(reminder: Reminder) -> dict[str, str]:
    """The id is the request's own: a client that sends it again gets the same job."""
    try:
        receipt = await remind.enqueue(reminder, id=f"visit-{reminder.visit}")
    except Overloaded as busy:
        wait = str(int(busy.retry_after) + 1)
        raise HTTPException(503, busy.reason, headers={"Retry-After": wait}) from None
    return {"id": receipt.id, "status": receipt.status}


@api.get("/reminders/{job_id}")
async def show(job_id: str) -> dict[str, object]:
    view = await remind.handle(job_id).view()
    if view is None:
        raise HTTPException(404, f"no reminder {job_id}")
    return {"id": view.id, "state": view.state, "progress": view.progress}


async def main() -> None:
    transport = httpx.ASGITransport(api)
    async with (
        api.router.lifespan_context(api),
        httpx.AsyncClient(transport=transport, base_url="http://clinic") as client,
    ):
        for _ in range(2):
            answer = await client.post("/reminders", json={"to": "ana", "visit": 7})
            print(answer.status_code, answer.json())
        print(await remind.handle("visit-7").result(timeout="10s"))
        print((await client.get("/reminders/visit-7")).json())


if __name__ == "__main__":
    asyncio.run(main())
