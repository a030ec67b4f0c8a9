"""Six features that can fail apart from each other, and what a field service tells its users.

python -m examples.features
"""

import asyncio

from faena import Breaker, Faena, FeaturesView

app = Faena("features")

openai = app.upstream("openai", breaker=Breaker(volume=4, open="30s"))
mercadopago = app.upstream("mercadopago", breaker=Breaker(volume=4, open="30s"))
afip = app.upstream("afip", breaker=Breaker(volume=4, open="60s"))

ai_whatsapp = app.feature(
    "ai.whatsapp", fallback="manual", upstreams=[openai], message="a person answers"
)
ai_voice = app.feature(
    "ai.voice", fallback="manual", upstreams=[openai], message="a person listens"
)
payments = app.feature(
    "payments.mercadopago", fallback="manual", upstreams=[mercadopago], message="pay in cash"
)
invoicing = app.feature(
    "invoicing.afip",
    critical=True,
    fallback="queue",
    upstreams=[afip],
    when_open="degraded",
    message="AFIP does not answer; invoices are queued",
)
tracking = app.feature("tracking.realtime", fallback="polling")
push = app.feature("notifications.push", fallback="email")

black_friday = app.level("black-friday", {"ai.voice": "offline", "tracking.realtime": "degraded"})

invoices = app.queue("invoices", concurrency=4)
websocket_is_up = True


@app.health_check("tracking.realtime", every="10s", timeout="2s", failures=3)
async def tracking_answers() -> bool:
    return websocket_is_up


@invoices.task(upstreams=[afip])
async def request_cae(invoice: str) -> str:
    raise ConnectionRefusedError(f"no CAE for {invoice}")


@invoices.task
async def notify(customer: str) -> str:
    """Handlers and web pages ask the copy of their process: no round trip."""
    return f"{customer}: {push.fallback if push.uses_fallback else 'push'}"


def show(title: str, view: FeaturesView) -> None:
    print(f"{title}: {view.overall}")
    for one in view.features.values():
        if not one.is_healthy:
            print(f"  {one.name} {one.state} ({one.source}): {one.message or one.fallback}")


async def main() -> None:
    async with app:
        await app.features.follow()
        show("all is well", await app.features())
        await request_cae.enqueue_many([f"inv-{number}" for number in range(10)])
        worker = asyncio.create_task(app.run_worker())
        async for event in app.events(since="start", kinds="feature_degraded"):
            print(event.value, event.reason)
            break
        show("AFIP is down", await app.features())
        await push.set("offline", message="Firebase is down", by="ana", lasting="1h")
        print(await (await notify.enqueue("leo")).handle.result(timeout="10s"))
        await black_friday.on(by="ana", lasting="1d")
        show("on Black Friday", await app.features())
        await black_friday.off(by="ana")
        await push.clear(by="ana")
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
