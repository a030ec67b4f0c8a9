"""Thirteen queues of a field-service company: every limit, order, retry, pool and schedule.

    faena worker examples.campotech:app --pool high
    faena queues examples.campotech:app

`python -m examples.campotech` needs no more: it takes one invoice from its CAE to the message that
reaches the customer, and prints what happened.
"""

import asyncio
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from faena import (
    Backpressure,
    DeadLetters,
    Faena,
    IdempotencyKey,
    Job,
    Limit,
    Order,
    Priority,
    Queue,
    Retain,
    Retry,
    WebhookKey,
)

app = Faena("campotech", dead_letters=DeadLetters(retry_after="1h", most_retries=2, alert_new=10))

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
ORG = "tenant_limits"  # a rate of each organisation
AFIP = Retry.steps("30s", "2m", "5m", "15m", "30m", attempts=5)
WHATSAPP = Retry.steps("5s", "15s", "60s", attempts=3)
FIXED = Retry.fixed("30s", attempts=2)
RETAIN = Retain(completed="24h", completed_count=1_000, dead="30d", dead_count=10_000)


def queue(
    name: str, priority: int, rate: str, slots: int, retry: Retry | int, timeout: str, **more: Any
) -> Queue:
    """One row of the registry; `retry` may be the attempts of an exponential one."""
    return app.queue(
        name,
        priority=priority,
        concurrency=slots,
        retry=Retry.exponential(attempts=retry) if isinstance(retry, int) else retry,
        timeout=timeout,
        backpressure=Backpressure(soft=100, hard=500),
        retain=RETAIN,
        **{more.pop("per", "limits"): [Limit(rate)]},
        **more,
    )


afip = queue("afip.invoice", HIGH, "10/min", 3, AFIP, "60s", order=Order.TENANT)
payments = queue("payment.webhook", HIGH, "100/min", 10, 5, "30s")
outbound = queue(
    "whatsapp.outbound", HIGH, "50/min", 5, WHATSAPP, "30s", per=ORG, order=Order.TENANT
)
inbound = queue("whatsapp.inbound", NORMAL, "200/min", 20, 3, "10s")
transcription = queue("voice.transcription", NORMAL, "20/min", 5, 3, "2m")
extraction = queue("voice.extraction", NORMAL, "50/min", 10, 3, "30s")
notification = queue("job.notification", NORMAL, "100/min", 10, 3, "30s", per=ORG)
pdf = queue("invoice.pdf", NORMAL, "50/min", 5, 3, "60s")
offline = queue("sync.offline", LOW, "100/min", 10, 5, "30s", per=ORG, order=Order.KEY)
reconciliation = queue("reconciliation", LOW, "5/min", 2, 3, "5m", order=Order.QUEUE)
cleanup = queue("cleanup", LOW, "10/min", 2, FIXED, "60s")
analytics = queue("analytics", LOW, "50/min", 5, FIXED, "30s")
scheduler = queue("scheduler", NORMAL, "100/min", 5, 3, "10s")

app.pool("high", [afip, payments, outbound], instances=2, concurrency=5, memory="512Mi")
app.pool(
    "normal",
    [inbound, transcription, extraction, notification, pdf],
    instances=3,
    concurrency=10,
    memory="1Gi",
)
app.pool("low", [offline, reconciliation, cleanup, analytics], concurrency=5, memory="256Mi")
app.pool("scheduler", [scheduler], concurrency=5, memory="256Mi")


class Invoice(BaseModel):
    id: str
    kind: Literal["A", "B", "C"]
    point_of_sale: Annotated[int, Field(ge=1, le=99_999)]
    customer: str


class Cae(BaseModel):
    number: str


class Payment(BaseModel):
    id: str
    event: Literal["payment", "refund", "chargeback"]


@afip.task
async def request_cae(invoice: Invoice, job: Job) -> Cae:
    """Asked of the tax office once for each invoice, in the order of its organisation."""
    key = IdempotencyKey(job.tenant or "", "invoice", invoice.id, f"cae{invoice.point_of_sale}")
    async with afip.idempotency.once(key, job, result=Cae) as record:
        if not record.is_done:
            record.result = Cae(number="71234567890123")
    return record.result


@pdf.task
async def render(invoice: Invoice, job: Job) -> str:
    cae = job.parents["request_cae"].value(Cae)
    return f"{invoice.id}.pdf with CAE {cae.number}"


@outbound.task
async def send(to: str, job: Job) -> str:
    return f"{to} was sent {job.parents['render'].value()}"


@payments.task
async def take_payment(payment: Payment) -> str:
    return f"{payment.event} {payment.id} is booked"


@app.cron("0 9 * * *", queue=scheduler, tz="America/Argentina/Buenos_Aires")
async def check_overdue_invoices() -> None: ...


async def main() -> None:
    invoice = Invoice(id="inv-9", kind="B", point_of_sale=4, customer="ana")
    async with app:
        plan = app.chain(
            request_cae.draft(invoice, tenant="org-1"),
            render.draft(invoice, tenant="org-1"),
            send.draft(invoice.customer, tenant="org-1"),
        )
        flow = await plan.start()
        paid = Payment(id="98765", event="payment")
        key = WebhookKey("mp", f"{paid.id}_{paid.event}")
        twice = [await take_payment.enqueue(paid, id=key) for _ in range(2)]
        print([receipt.status for receipt in twice])
        await app.run_worker(until_empty=True)
        print(await twice[0].handle.result(timeout="10s"))
        print(await flow.result("send", timeout="10s"))


if __name__ == "__main__":
    asyncio.run(main())
