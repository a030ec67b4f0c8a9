"""Invoices against the tax office's record, series by series, number by number.

    {}                         the first series with invoices in the period
    {"after": series}          the one after it
    {"at": series, number …}   its numbers that are not settled: unknown to us, or sent without a
                               CAE; a full comparison asks for all of them

An invoice that AFIP has and that we hold as sent gets its CAE. What AFIP has and we do not, or what
we have and AFIP does not, or with another amount, is for people. AFIP is asked for a few numbers at
a time, with pauses: it is the same office that gives CAEs, and those come first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import UUID

from apps.campotech.invoicing import invoice as invoices
from apps.campotech.invoicing.invoice import KINDS, Invoice
from apps.campotech.invoicing.issue import note_issued
from apps.campotech.invoicing.pending import message_of
from apps.campotech.upkeep.comparison import Difference, Found, Part, Period, Position
from apps.providers.afip import Authorized, Different, Issued, NotIssued, Permanent, TicketHeld
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

SLICE: Final = 10
"""Numbers that are asked for at a time."""
_PAUSE: Final = "90s"
"""Between slices: 400 of the 1,000 calls that AFIP takes in an hour."""
_NEXT: Final = """
    SELECT one.organization_id, owner.cuit, one.point_of_sale, one.kind
    FROM campotech.invoices one
    JOIN campotech.organizations owner ON owner.id = one.organization_id
    WHERE one.voucher_date BETWEEN %(first)s AND %(last)s
        AND coalesce(one.organization_id = %(org)s, true)
        AND (one.organization_id, one.point_of_sale, one.kind)
            > (%(after_org)s, %(after_point)s, %(after_kind)s::bpchar)
    ORDER BY one.organization_id, one.point_of_sale, one.kind LIMIT 1
"""
_RANGE: Final = """
    SELECT max(number) FILTER (WHERE voucher_date < %(first)s) + 1,
        min(number) FILTER (WHERE voucher_date BETWEEN %(first)s AND %(last)s),
        min(number) FILTER (WHERE voucher_date > %(last)s) - 1
    FROM campotech.invoices
    WHERE organization_id = %(org)s AND point_of_sale = %(point)s AND kind = %(kind)s
"""
_OPEN: Final = """
    SELECT number.number FROM generate_series(%(number)s::bigint, %(stop)s::bigint) number(number)
    LEFT JOIN campotech.invoices one ON one.number = number.number
        AND one.organization_id = %(org)s AND one.point_of_sale = %(point)s AND one.kind = %(kind)s
    WHERE %(full)s OR one.id IS NULL OR one.status = 'sending'
    ORDER BY 1 LIMIT %(most)s
"""
_BEYOND: Final = """
    SELECT id, number FROM campotech.invoices
    WHERE organization_id = %(org)s AND point_of_sale = %(point)s AND kind = %(kind)s
        AND number > %(above)s AND status = 'issued' AND voucher_date BETWEEN %(first)s AND %(last)s
    ORDER BY number
"""
T = TypeVar("T")


class Series(NamedTuple):
    """What AFIP numbers."""

    organization: UUID
    cuit: str
    point: int
    kind: str

    def name(self, number: int) -> str:
        """A voucher as people write it."""
        return f"{self.kind} {self.point:05}-{number:08}"

    def as_json(self) -> list[Any]:
        """As a position has it."""
        return [str(self.organization), self.cuit, self.point, self.kind]

    @classmethod
    def read(cls, value: list[Any]) -> Series:
        """From a position."""
        organization, cuit, point, kind = value
        return cls(UUID(organization), cuit, point, kind)

    def given(self, period: Period, **more: Any) -> dict[str, Any]:
        """For a statement."""
        days = {"first": period.first, "last": period.last}
        return {"org": self.organization, "point": self.point, "kind": self.kind, **days, **more}


class Refused(NamedTuple):
    """AFIP does not speak with us about this organisation."""

    problem: str


Answer = Issued | Authorized | Different | NotIssued | None


class Invoices:
    """A comparison of invoices."""

    def __init__(self, system: System) -> None:
        self._system, self._pg, self._client = system, system.pg, system.afip
        self._upstream, self._pause = system.upstreams.afip, system.pace.of(_PAUSE)

    async def read(self, period: Period, position: Position) -> Part:
        """The beginning of a series, or some of its numbers."""
        if "at" in position:
            return await self._read_numbers(period, position)
        series = await self._next(period, position.get("after"))
        return Part(then=None) if series is None else await self._read_series(period, series)

    # -- a series ---------------------------------------------------------------------------------

    async def _next(self, period: Period, after: list[Any] | None) -> Series | None:
        before = Series(UUID(int=0), "", 0, "") if after is None else Series.read(after)
        given = {
            "first": period.first,
            "last": period.last,
            "org": period.organization,
            "after_org": before.organization,
            "after_point": before.point,
            "after_kind": before.kind,
        }
        async with self._pg.transaction("reconciliation") as connection:
            row = await (await connection.execute(_NEXT, given)).fetchone()
        return None if row is None else Series(*row)

    async def _read_series(self, period: Period, series: Series) -> Part:
        kind = KINDS[series.kind]
        last = await self._ask(
            lambda: self._client.last_authorized(series.cuit, series.point, kind)
        )
        if isinstance(last, Refused):
            return _skipped(series, last)
        async with self._pg.transaction("reconciliation") as connection:
            row = await (await connection.execute(_RANGE, series.given(period))).fetchone()
        # Before our first number in the series others have issued it, and that is their affair.
        after_earlier, first_own, before_later = row or (None, None, None)
        then = {
            "at": series.as_json(),
            "number": after_earlier or first_own or 1,
            "stop": min(last, before_later or last),
        }

        async def write(connection: Connection) -> Found:
            given = series.given(period, above=last)
            rows = await (await connection.execute(_BEYOND, given)).fetchall()
            problem = "AFIP does not have an invoice that we hold as issued"
            lacking = [_difference(series, n, problem, invoice=str(one)) for one, n in rows]
            return Found(len(rows), 0, lacking)

        return Part(then=then, write=write)

    # -- its numbers ------------------------------------------------------------------------------

    async def _read_numbers(self, period: Period, position: Position) -> Part:
        series = Series.read(position["at"])
        given = series.given(
            period,
            number=position["number"],
            stop=position["stop"],
            full=period.is_full,
            most=SLICE,
        )
        async with self._pg.transaction("reconciliation") as connection:
            rows = await (await connection.execute(_OPEN, given)).fetchall()
            known = {n: await _find(connection, series, n) for (n,) in rows}
        answers: dict[int, Answer] = {}
        for number, own in known.items():
            answer = await self._ask_for(series, number, own)
            if isinstance(answer, Refused):
                return _skipped(series, answer)
            answers[number] = answer

        async def write(connection: Connection) -> Found:
            found = Found()
            for number, answer in answers.items():
                found.looked_at += 1
                own = await _find(connection, series, number)
                await self._judge(connection, period, (series, number, own, answer), found)
            return found

        is_last = len(rows) < SLICE
        then = {"after": series.as_json()} if is_last else {**position, "number": max(known) + 1}
        return Part(then=then, write=write, pause=None if is_last else self._pause)

    async def _ask_for(self, series: Series, number: int, own: Invoice | None) -> Answer | Refused:
        kind = KINDS[series.kind]
        if own is not None and own.cae is None:
            voucher = own.voucher()
            return await self._ask(lambda: self._client.recover(series.cuit, voucher))
        return await self._ask(
            lambda: self._client.consult(series.cuit, series.point, kind, number)
        )

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T | Refused:
        """An organisation whose certificate or rights are missing stops no other."""
        async with self._upstream.call():
            try:
                return await question()
            except (Permanent, TicketHeld) as error:
                return Refused(str(error))

    async def _judge(
        self,
        connection: Connection,
        period: Period,
        asked: tuple[Series, int, Invoice | None, Answer],
        found: Found,
    ) -> None:
        series, number, own, answer = asked
        if isinstance(answer, Authorized):
            if own is not None and await self._give_cae(connection, own, answer):
                found.repaired += 1
            return
        problem = _problem(period, own, answer)
        if problem is not None:
            detail = {} if own is None else {"invoice": str(own.id)}
            found.differences.append(_difference(series, number, problem, **detail))

    async def _give_cae(self, connection: Connection, own: Invoice, answer: Authorized) -> bool:
        """Write it down; the invoice's own job then has the PDF made and sent."""
        if own.number != answer.number or not await note_issued(connection, own, answer):
            return False
        message = message_of(
            own.id,
            own.organization_id,
            own.customer_id,
            own.kind,
            own.point_of_sale,
            own.total_cents,
            own.created_at,
        )
        await self._pg.outbox.enqueue(
            connection,
            self._system.issuing.request_cae,
            message,
            tenant=str(own.organization_id),
            id=f"reconciled-{own.id.hex}",
        )
        return True


def _problem(period: Period, own: Invoice | None, answer: Answer) -> str | None:
    """What people must look at; None if all is well, or a job is about to deal with it."""
    if isinstance(answer, NotIssued):  # it was never sent: its job sends it
        return None
    if isinstance(answer, Different):
        fields = ", ".join(answer.differences)
        return f"AFIP has another voucher under the number of our invoice (it differs in {fields})"
    if isinstance(answer, Issued):
        if own is None:
            is_of_period = period.first <= answer.date <= period.last
            return "AFIP has a voucher that we do not know" if is_of_period else None
        fields = ", ".join(_differing(own, answer))
        return f"our invoice is not what AFIP has (it differs in {fields})" if fields else None
    if own is None:
        return "AFIP has a gap in the numbers of the series"
    return "AFIP does not have an invoice that we hold as issued" if own.cae else None


def _differing(own: Invoice, issued: Issued) -> list[str]:
    """What was agreed when it was issued; the customer's data may have changed since."""
    if own.cae is None:  # issued between two questions: the next run finds it
        return []
    pairs: dict[str, tuple[int | str | date | None, int | str | date]] = {
        "cae": (own.cae, issued.code),
        "date": (own.voucher_date, issued.date),
        "total": (own.total_cents, issued.total_cents),
        "net": (own.net_cents, issued.net_cents),
        "vat": (own.vat_cents, issued.vat_cents),
    }
    return [name for name, (ours, theirs) in pairs.items() if ours != theirs]


def _difference(series: Series, number: int, problem: str, **detail: Any) -> Difference:
    return Difference(
        problem=problem,
        subject=series.name(number),
        organization=series.organization,
        detail=detail,
    )


def _skipped(series: Series, refused: Refused) -> Part:
    async def write(_connection: Connection) -> Found:
        said = Difference(
            problem=f"AFIP could not be asked: {refused.problem}",
            subject=f"{series.kind} {series.point:05}",
            organization=series.organization,
        )
        return Found(0, 0, [said])

    return Part(then={"after": series.as_json()}, write=write)


async def _find(connection: Connection, series: Series, number: int) -> Invoice | None:
    return await invoices.find_in_series(
        connection, series.organization, series.point, series.kind, number
    )
