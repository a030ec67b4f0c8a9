"""Normal load, then the tax office is down, then the budget for AI is used up (004 §9.1.3).

Users look at the health of the system and hand in invoices all the time; customers write. After the
trouble everything that was accepted must come to its end: each invoice to one CAE, each message to
an answer or to a person.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

from apps.load import goals
from apps.load.crowd import Seen, send_crowd
from apps.load.crowd_plan import CrowdPlan, Errand, Group, Stage, write_errands
from apps.load.customers import make_customers
from apps.load.figure import Findings, Panel, at_percent, percentiles, share, shown
from apps.load.scene import Curves, Scene, beside, by_second, looking
from apps.sandbox import Fault

_NORMAL, _DOWN, _LIMITED = 100, 50, 50
"""Users of the three groups."""
_MINUTES: Final = 5.0
_DOWN_AT, _LIMITED_AT = 2.0, 3.0
_THINK_S: Final = 1.0
_INVOICE_EVERY: Final = 10
"""In normal times: looks at the health for each invoice."""
_TEXT_EVERY_S: Final = 0.5
_TRIES: Final = 100
_RETRY_S: Final = 0.2
BUDGET_USD: Final = 50
"""Of a day: so much is used up at once."""
_DOLLARS_PER_TOKEN: Final = 0.03 / 1000
_MESSAGES: Final = """
    SELECT count(*) FILTER (WHERE status = 'answered'),
        count(*) FILTER (WHERE status = 'for_person'), count(*)
    FROM campotech.whatsapp_messages WHERE direction = 'inbound' AND created_at >= %s
"""


class _Trouble:
    """What goes wrong, and when it did, by the monotonic clock."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.down_at = self.up_at = self.limited_at = 0.0

    async def make(self) -> None:
        """The tax office goes, the budget goes, the tax office comes back."""
        stage, sizes, screen = self._scene.stage, self._scene.sizes, self._scene.screen
        await asyncio.sleep(sizes.seconds(_DOWN_AT))
        stage.sandbox.afip.faults.add(Fault(kind="status", status=503))
        self.down_at = time.monotonic()
        screen.say("the tax office is down")
        await asyncio.sleep(sizes.seconds(_LIMITED_AT - _DOWN_AT))
        await self._use_up()
        self.limited_at = time.monotonic()
        screen.say("the budget for AI is used up")
        await asyncio.sleep(sizes.seconds(_MINUTES + _DOWN_AT - _LIMITED_AT))
        await self.end()

    async def end(self) -> None:
        """The tax office is back; nobody need tell the system."""
        if self.up_at:
            return
        stage = self._scene.stage
        stage.sandbox.afip.faults.clear()
        self.up_at = time.monotonic()
        self._scene.screen.say("the tax office is back")

    async def _use_up(self) -> None:
        """One dear call of somebody else's."""
        tokens = round(BUDGET_USD / _DOLLARS_PER_TOKEN)
        async with self._scene.stage.system.upstreams.openai.call(
            estimate={"gpt-4-turbo.output": 1}
        ) as call:
            call.spend({"gpt-4-turbo.output": tokens})


class _Customers:
    """Write to businesses, one after the other."""

    def __init__(self, scene: Scene) -> None:
        self._stage = scene.stage
        self.taken = 0
        self._last: asyncio.Task[None] | None = None

    async def write(self) -> None:
        """Until cancelled."""
        number = 0
        while True:
            self._last = asyncio.create_task(self._text(number))
            await asyncio.shield(self._last)
            number += 1
            await asyncio.sleep(_TEXT_EVERY_S)

    async def finish(self) -> None:
        """Wait for the last one."""
        if self._last is not None:
            await self._last

    async def _text(self, number: int) -> None:
        """What Meta does: the same webhook until somebody takes it."""
        whatsapp = self._stage.sandbox.whatsapp
        business = self._stage.businesses[number % len(self._stage.businesses)]
        phone = f"549117{number:07}"
        event = whatsapp.text(phone, "Hola, ¿atienden hoy?", name=f"Cliente {number}")
        url = f"{self._stage.url}/webhooks/whatsapp"
        sent = await whatsapp.notify(url, event, number=business.phone_number_id)
        for _ in range(_TRIES):
            if sent.status == 200:
                self.taken += 1
                return
            await asyncio.sleep(_RETRY_S)
            sent = await whatsapp.replay(sent)


async def play(scene: Scene) -> Findings:
    """The whole scenario."""
    findings, curves, since = Findings("degradation"), Curves(), await scene.now()
    trouble, customers = _Trouble(scene), _Customers(scene)
    plan, ids = await _plan(scene)
    scene.screen.begin("degradation", plan.seconds)

    async def note() -> None:
        scene.stage.crew.check()
        left = await scene.left()
        curves.note("without a CAE", left.pending)
        curves.note("issued", left.issued)

    async with beside(trouble.make(), customers.write(), looking(note)):
        seen = await send_crowd(plan, lambda seen: _show(scene, seen))
    await trouble.end()
    await customers.finish()
    tried = {ids[group][one.errand] for one in seen.done if (group := one.group) in ids} - {None}
    accepted = {ids[one.group][one.errand] for one in seen.done if one.ending == "taken"} - {None}
    scene.books.add({one for one in accepted if one}, {one for one in tried if one})
    settled = await scene.settle()
    _measure(findings, seen, trouble)
    findings.facts["invoices"] = (
        f"{len(accepted):,} accepted, all done {settled.seconds:.1f} s after"
    )
    findings.facts["turned away"] = f"{seen.turned_away:,} answers, {seen.unanswered:,} unanswered"
    findings.facts["delay of the users' process"] = seen.delay
    await _judge_messages(scene, findings, customers, since)
    settled.judge(findings)
    await scene.books.judge(findings)
    findings.panels += _panels(seen, curves)
    return findings


def _show(scene: Scene, seen: Seen) -> None:
    health = [one.ms for one in seen.of("health")[-100:]]
    scene.screen.show(
        {
            "users": f"{seen.users:,}",
            "health p95": shown(at_percent(health, 95), "ms"),
            "invoices accepted": f"{seen.endings['taken'] - len(seen.of('health')):,}",
            "turned away": f"{seen.turned_away:,}",
        }
    )


async def _plan(scene: Scene) -> tuple[CrowdPlan, dict[str, list[UUID | None]]]:
    """The groups, and the invoice of each errand that has one."""
    sizes = scene.sizes
    seconds, headers = sizes.seconds(_MINUTES), tuple(one.headers for one in scene.stage.businesses)
    groups: list[Group] = []
    ids: dict[str, list[UUID | None]] = {}
    for name, users, begins, every in (
        ("normal", _NORMAL, 0.0, _INVOICE_EVERY),
        ("AFIP down", _DOWN, _DOWN_AT, 2),
        ("AI limited", _LIMITED, _LIMITED_AT, 0),
    ):
        wanted = sizes.crowd(users)
        think = _THINK_S / 2 if every == 2 else _THINK_S
        most = int(wanted * seconds / think * 1.2) + wanted
        errands, ids[name] = await _errands(scene, name, most, every)
        path = scene.directory / f"degradation-{name.replace(' ', '-')}.errands"
        groups.append(
            Group(
                name=name,
                stages=(Stage(0.0, wanted), Stage(seconds, wanted)),
                errands=write_errands(path, errands),
                headers=headers,
                think_s=think,
                begins_s=sizes.seconds(begins),
            )
        )
    return CrowdPlan(url=scene.stage.url, groups=tuple(groups)), ids


async def _errands(
    scene: Scene, name: str, most: int, every: int
) -> tuple[list[Errand], list[UUID | None]]:
    """Looks at the health; each `every`-th errand is an invoice."""
    errands: list[Errand] = []
    ids: list[UUID | None] = []
    businesses = scene.stage.businesses
    each = most // every // len(businesses) + 1 if every else 0
    customers = await make_customers(scene, each) if each else []
    for number in range(most):
        if every and number % every == every - 1:
            turn, who = divmod(number // every, len(businesses))
            called = f"{scene.sizes.seed} {name} {number}"
            errand, invoice = _invoice(scene, who, called, customers[who][turn])
        else:
            errand, invoice = Errand("health", "GET", "/api/health"), None
        errands.append(errand)
        ids.append(invoice)
    return errands, ids


def _invoice(scene: Scene, who: int, name: str, customer: UUID) -> tuple[Errand, UUID]:
    business = scene.stage.businesses[who]
    key = uuid5(business.id, f"degradation {name}").hex
    body = {
        "customerId": str(customer),
        "invoiceType": "B",
        "puntoVenta": 1,
        "net": "15000.00",
        "description": "Servicio técnico",
    }
    errand = Errand("invoice", "POST", "/api/v1/invoices", who, json.dumps(body), key)
    return errand, uuid5(NAMESPACE_OID, f"invoice {business.id} {key}")


def _measure(findings: Findings, seen: Seen, trouble: _Trouble) -> None:
    health = seen.of("health")
    during = [one for one in seen.of("invoice") if trouble.down_at <= one.at < trouble.up_at]
    answered = share(one.status in (200, 503) for one in health)
    findings.measure(goals.HEALTH_ANSWERS, answered, f"{len(health):,} requests")
    note = percentiles([one.ms for one in health])
    findings.measure(goals.HEALTH_TIME, at_percent([one.ms for one in health], 95), note)
    taken = share(one.status in (200, 202) for one in during)
    later = sum(one.status in (429, 503) for one in during)
    note = f"{len(during):,} requests; {later:,} were told to come again"
    findings.measure(goals.INVOICE_TAKEN, taken, note)
    for name, begins, ends in (
        ("before", 0.0, trouble.down_at),
        ("AFIP down", trouble.down_at, trouble.limited_at),
        ("AI limited too", trouble.limited_at, trouble.up_at),
    ):
        part = [one for one in health if begins <= one.at < ends]
        statuses = ", ".join(f"{one}" for one in sorted({one.status for one in part}))
        words = percentiles([one.ms for one in part])
        findings.facts[f"health, {name}"] = f"{words}; status {statuses}"


async def _judge_messages(
    scene: Scene, findings: Findings, customers: _Customers, since: object
) -> None:
    ((answered, for_person, known),) = await scene.stage.rows(_MESSAGES, since)
    findings.facts["messages of customers"] = (
        f"{customers.taken:,}: {answered:,} answered by a model, {for_person:,} for a person"
    )
    lost = customers.taken - known
    findings.none("messages lost", lost, "taken, and nowhere to be found")
    findings.none("messages open", known - answered - for_person, "nobody deals with them")


def _panels(seen: Seen, curves: Curves) -> list[Panel]:
    return [
        Panel(
            "health (ms, p95 of each second)",
            [by_second("health", seen.of("health"), curves.began)],
        ),
        Panel("invoices", [curves.line("without a CAE"), curves.line("issued")]),
    ]
