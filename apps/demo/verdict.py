"""What the day has come to: promises, the database and the ledgers of the outside world compared.

Each line that can be wrong says whether it is. The ledgers were kept by the stand-ins, not by the
system: that an invoice has one CAE is counted, not believed.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from apps.campotech import registry
from apps.demo import count
from apps.demo.people import Accepted
from apps.demo.trouble import Happened
from apps.demo.watch import Seen
from apps.stage.stage import Stage

_REQUEST: Final = "FECAESolicitar"
_SEND: Final = "POST /{id}/messages"
_INVOICES: Final = """
    SELECT one.id, owner.cuit, one.number, one.cae, one.status, one.created_at,
        one.pdf_key, one.paid_cents
    FROM campotech.invoices one JOIN campotech.organizations owner ON owner.id = one.organization_id
    ORDER BY one.number
"""
_STARTS: Final = """
    SELECT queue, tenant, started_at, attempts, wait_us / 1e6::float8, enqueued_at, state
    FROM faena.history WHERE started_at IS NOT NULL
"""
_MESSAGES: Final = """
    SELECT kind, status, count(*) FROM campotech.whatsapp_messages
    WHERE direction = 'inbound' GROUP BY 1, 2
"""
_DRAFTS: Final = "SELECT count(*) FROM campotech.jobs WHERE status = 'draft'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure."""

    name: str
    value: str
    note: str = ""
    is_good: bool | None = None
    """None: it is neither."""


@dataclass(slots=True)
class Verdict:
    """All figures."""

    lines: list[Line] = field(default_factory=list[Line])

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return all(one.is_good is not False for one in self.lines)

    def add(self, name: str, value: object, note: str = "", *, is_good: bool | None = None) -> None:
        """One more."""
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        self.lines.append(Line(name=name, value=shown, note=note, is_good=is_good))

    def none(self, name: str, number: int, note: str) -> None:
        """One that must be 0."""
        self.add(name, number, note, is_good=number == 0)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        lines = [
            {"name": one.name, "value": one.value, "note": one.note, "isGood": one.is_good}
            for one in self.lines
        ]
        return {"isGood": self.is_good, "lines": lines}


async def judge(stage: Stage, accepted: Accepted, happened: Happened, seen: Seen) -> Verdict:
    """Compare everything."""
    verdict = Verdict()
    own = stage.system.queues
    starts = [row for row in await stage.rows(_STARTS) if row[0] in own]  # and no notices of alerts
    ended = Counter(row[0] for row in starts)
    verdict.add("jobs", sum(ended.values()), f"ended, in {len(ended)} queues")
    verdict.add("turned away", accepted.turned_away, "requests made again: a queue was full")
    await _invoices(verdict, stage, accepted)
    await _attempts(verdict, stage, starts)
    _limits(verdict, stage, starts)
    await _messages(verdict, stage, accepted)
    _tenants(verdict, stage, starts)
    _troubles(verdict, stage, happened, seen)
    await _costs(verdict, stage)
    return verdict


# -- invoices -------------------------------------------------------------------------------------


async def _invoices(verdict: Verdict, stage: Stage, accepted: Accepted) -> None:
    rows = await stage.rows(_INVOICES)
    issued = [row for row in rows if row[4] == "issued"]
    lost = set(accepted.invoices) - {row[0] for row in rows}
    verdict.add("invoices", len(accepted.invoices), "accepted by the API")
    verdict.none("lost", len(lost), "accepted, and nowhere to be found")
    verdict.none("not issued", len(rows) - len(issued), "without a CAE at the end")
    verdict.none("no PDF", sum(row[6] is None for row in issued), "issued, and never printed")
    vouchers = [count.Voucher(row[1], row[2], row[3], row[5]) for row in issued]
    entries = stage.sandbox.afip.ledger.of(_REQUEST, "ok")
    given = {name: cae for one in entries for name, cae in one.detail["caes"].items()}
    doubled = abs(len(entries) - len(issued))
    verdict.none("doubled at AFIP", doubled, "vouchers there beyond one for each invoice")
    wrong = count.wrong_caes(vouchers, given)
    verdict.none("wrong CAE", wrong, "not the one that the tax office gave")
    verdict.none("gaps", count.gaps(vouchers), "numbers that a business has skipped")
    inversions = count.inversions(vouchers)
    verdict.none("inversions", inversions, "numbers against the order of the requests")
    paid = {row[0]: row[7] for row in rows}
    missed = sum(paid.get(one) != cents for one, cents in accepted.payments.items())
    verdict.add("payments", len(accepted.payments), "told by MercadoPago")
    verdict.none("not counted", missed, "payments that their invoice does not show, once")


# -- attempts, limits, messages -------------------------------------------------------------------


async def _attempts(verdict: Verdict, stage: Stage, starts: list[tuple[Any, ...]]) -> None:
    """Each attempt of a job that asks for a CAE is a call that has reached the tax office."""
    failed = stage.sandbox.afip.ledger.where(
        lambda one: one.operation != "loginCms" and one.outcome in ("status", "cut")
    )
    used = sum(row[3] - 1 for row in starts if row[0] == "afip.invoice" and row[3])
    verdict.add(
        "attempts", used, f"failed at the tax office, by {len(failed)} calls that it refused"
    )
    spared = max(0, used - len(failed))
    verdict.none("spent in vain", spared, "attempts used while the tax office was left alone")
    dead = sum(row[6] == "dead" for row in starts)
    verdict.none("dead", dead, "jobs that were given up")


def _limits(verdict: Verdict, stage: Stage, starts: list[tuple[Any, ...]]) -> None:
    """In no window, wherever it begins, are more starts than the limit; by the broker's clock."""
    excess = 0
    for row in registry.ROWS:
        limit = stage.system.pace.limit(row.rate)
        window = timedelta(microseconds=limit.per_us)
        groups: dict[Any, list[datetime]] = defaultdict(list)
        for queue, tenant, at, *_ in starts:
            if queue == row.name:
                groups[tenant if row.isolation == "org" else None].append(at)
        excess += sum(count.excess(times, window, limit.max) for times in groups.values())
    verdict.none("over a limit", excess, "starts beyond what a window of a limit holds")


async def _messages(verdict: Verdict, stage: Stage, accepted: Accepted) -> None:
    sent = [one.detail["id"] for one in stage.sandbox.whatsapp.ledger.of(_SEND, "ok")]
    verdict.add("messages", len(sent), "sent to customers")
    taken = Counter(
        one.body["text"]["body"]
        for one in stage.sandbox.whatsapp.conversation.sent.values()
        if one.body.get("type") == "text"
    )
    lost = sum(taken[text] < 1 for text in accepted.campaign)
    doubled = sum(taken[text] > 1 for text in accepted.campaign)
    verdict.none("messages lost", lost, f"of a campaign of {len(accepted.campaign)}")
    verdict.none("messages doubled", doubled, "of the same campaign")
    rows = await stage.rows(_MESSAGES)
    states = Counter[str]()
    for _, status, number in rows:
        states[status] += number
    wanted = accepted.texts + accepted.recordings
    verdict.add("written to us", wanted, f"{states['answered']} answered by a model")
    verdict.add("for a person", states["for_person"], "the budget was used up, or it was unclear")
    open_ones = wanted - states["answered"] - states["for_person"]
    verdict.none("unanswered", open_ones, "messages that nobody deals with")
    ((drafts,),) = await stage.rows(_DRAFTS)
    verdict.add("drafts", drafts, "jobs made of voice notes")


# -- tenants, troubles, costs ---------------------------------------------------------------------


def _tenants(verdict: Verdict, stage: Stage, starts: list[tuple[Any, ...]]) -> None:
    """How long jobs of quiet businesses wait while one is noisy, and before."""
    noisy = stage.businesses[0].tenant
    for queue in ("whatsapp.outbound", "afip.invoice"):
        rows = [row for row in starts if row[0] == queue and row[4] is not None]
        loud = [row for row in rows if row[1] == noisy]
        if not loud:
            continue
        since, until = count.busiest([row[5] for row in loud])
        quiet = [row for row in rows if row[1] != noisy]
        during = [row for row in quiet if since <= row[5] <= until]
        before = [row for row in quiet if row[5] < since]
        note = f"{queue}: before {_ms(before)}; the noisy one itself {_ms(loud)}"
        verdict.add("quiet p99", _ms(during), note)


def _ms(rows: list[tuple[Any, ...]]) -> str:
    wait_s = count.percentile([row[4] for row in rows], 99)
    return "-" if wait_s is None else f"{wait_s * 1000:,.0f} ms"


def _troubles(verdict: Verdict, stage: Stage, happened: Happened, seen: Seen) -> None:
    verdict.add("workers killed", len(happened.killed), f"{seen.rescued} jobs were rescued")
    for name, seconds in sorted(seen.degraded(time.monotonic()).items()):
        simulated = seconds * stage.wanted.speed / 60
        note = f"{name} was not well; {seconds:.1f} s here"
        verdict.add("degraded", f"{simulated:,.0f} min", note)


async def _costs(verdict: Verdict, stage: Stage) -> None:
    for budget in await stage.system.app.budget_views():
        if budget.upstream == "openai" and budget.per == "day":
            note = f"of {budget.amount} for a day, {budget.percent:.0f} %"
            is_good = budget.spent.micro <= budget.amount.micro
            verdict.add("cost of AI", str(budget.spent), note, is_good=is_good)
