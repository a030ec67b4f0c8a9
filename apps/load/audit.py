"""Counts invoices: what was accepted, what the database has, what the tax office has given.

Three lists that know nothing of each other: the users' own, the rows, and the ledger of the
stand-in. That each accepted invoice has one CAE is counted, not believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple
from uuid import UUID

from apps.load.figure import Findings
from apps.stage.stage import Stage

_REQUEST: Final = "FECAESolicitar"
_INVOICES: Final = """
    SELECT one.id, one.job_id, owner.cuit, one.point_of_sale, one.kind, one.number, one.cae
    FROM campotech.invoices one JOIN campotech.organizations owner ON owner.id = one.organization_id
"""
_CLASSES: Final = {"A": 1, "B": 6, "C": 11}


class Row(NamedTuple):
    """An invoice in the database."""

    id: UUID
    job: UUID | None
    cuit: str
    point_of_sale: int
    kind: str
    number: int | None
    cae: str | None

    @property
    def voucher(self) -> str:
        """What the tax office calls it."""
        return f"{self.cuit}/{self.point_of_sale}/{_CLASSES[self.kind]}/{self.number}"


class Given(NamedTuple):
    """A CAE that the tax office has given."""

    voucher: str
    cae: str


class Counted(NamedTuple):
    """What is wrong, if not 0."""

    lost: int
    """Accepted, and there is no invoice."""
    unissued: int
    """There is an invoice, and it has no CAE."""
    doubled: int
    """Invoices beyond one for each that was accepted."""
    unasked: int
    """Invoices that nobody has asked for."""
    given_twice: int
    """CAEs at the tax office beyond one for each invoice that has one."""
    wrong: int
    """Invoices whose CAE is not the one that was given."""
    gaps: int
    """Numbers that a series has skipped."""


def count(
    accepted: AbstractSet[UUID],
    tried: AbstractSet[UUID],
    rows: Iterable[Row],
    given: Iterable[Given],
) -> Counted:
    """Compare all three. `accepted` and `tried` are ids of invoices, or of the jobs billed."""
    rows, given = list(rows), list(given)
    named = Counter(name for row in rows if (name := _name(row, tried)) is not None)
    issued = {_name(row, tried) for row in rows if row.cae is not None}
    ours = {row.voucher: row.cae for row in rows if row.cae is not None}
    at_afip = dict(given)
    return Counted(
        lost=len(accepted - named.keys()),
        unissued=len((accepted & named.keys()) - issued),
        doubled=sum(named[name] - 1 for name in named),
        unasked=sum(_name(row, tried) is None for row in rows),
        given_twice=len(given) - len(ours.keys() & at_afip.keys()),
        wrong=sum(at_afip.get(voucher) != cae for voucher, cae in ours.items()),
        gaps=_gaps(rows),
    )


def _name(row: Row, tried: AbstractSet[UUID]) -> UUID | None:
    """By which of its ids somebody has asked for it."""
    return next((one for one in (row.id, row.job) if one is not None and one in tried), None)


def _gaps(rows: Iterable[Row]) -> int:
    numbers: dict[tuple[str, int, str], list[int]] = {}
    for row in rows:
        if row.cae is not None and row.number is not None:
            numbers.setdefault((row.cuit, row.point_of_sale, row.kind), []).append(row.number)
    return sum(max(one) - len(set(one)) for one in numbers.values())


class Books:
    """Everything that was asked for on a stage, by whichever scenario."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tried = set[UUID]()
        self._accepted = set[UUID]()

    def add(self, accepted: AbstractSet[UUID], tried: AbstractSet[UUID]) -> None:
        """What users have got, and what they have asked for."""
        self._accepted |= accepted
        self._tried |= accepted | tried

    async def judge(self, findings: Findings) -> Counted:
        """Compare, and add the promises to what a scenario has found."""
        rows = [Row(*one) for one in await self._stage.rows(_INVOICES)]
        counted = count(self._accepted, self._tried, rows, self._given())
        findings.none("lost", counted.lost, "accepted, and there is no invoice")
        findings.none("not issued", counted.unissued, "invoices without a CAE at the end")
        findings.none("doubled", counted.doubled, "invoices beyond one for each accepted")
        findings.none("unasked", counted.unasked, "invoices that nobody has asked for")
        findings.none("CAE given twice", counted.given_twice, "at AFIP, beyond one per invoice")
        findings.none("wrong CAE", counted.wrong, "not the one in AFIP's ledger")
        findings.none("gaps", counted.gaps, "numbers that a business has skipped")
        return counted

    def _given(self) -> list[Given]:
        entries: list[Any] = self._stage.sandbox.afip.ledger.of(_REQUEST, "ok")
        return [Given(*pair) for one in entries for pair in one.detail["caes"].items()]
