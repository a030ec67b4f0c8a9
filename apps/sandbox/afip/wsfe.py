"""WSFEv1: what its operations answer. Errors of business come with status 200."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from starlette.responses import Response

from apps.sandbox.afip import wsfe_soap as soap
from apps.sandbox.afip.authoriser import Authoriser, Verdict
from apps.sandbox.afip.classes import class_of
from apps.sandbox.afip.detail import read_detail
from apps.sandbox.afip.fields import Fields, Unreadable
from apps.sandbox.afip.register import Register, Series, subject_of
from apps.sandbox.afip.registry import Registry
from apps.sandbox.afip.rules import Head
from apps.sandbox.afip.terms import Terms
from apps.sandbox.afip.texts import NO_AUTH, NO_DATA, text_of
from apps.sandbox.afip.tokens import BadToken, Mint
from apps.sandbox.afip.wsfe_answers import WrongCae, record_nodes, verdict_nodes
from apps.sandbox.afip.wsfe_soap import Call
from apps.sandbox.afip.xml import node
from apps.sandbox.stand_in import Reply

_STATUS: Final = "FEDummy"
_LAST: Final = "FECompUltimoAutorizado"
_CONSULT: Final = "FECompConsultar"
_MOST: Final = "FECompTotXRequest"
_REQUEST: Final = "FECAESolicitar"
_SERVICE: Final = "wsfe"
_MOST_POINTS_OF_SALE: Final = 99_998


@dataclass(frozen=True, slots=True)
class _Failed:
    """Who asks is not accepted."""

    code: int
    text: str


class Invoicing:
    """The operations."""

    def __init__(
        self,
        registry: Registry,
        register: Register,
        mint: Mint,
        terms: Terms,
        now: Callable[[], datetime],
    ) -> None:
        self._registry, self._register, self._mint = registry, register, mint
        self._terms, self._now = terms, now
        self._authoriser = Authoriser(registry, register, terms)
        self.wrong_cae: WrongCae = "short"
        self._operations: dict[str, Callable[[Fields, int, bool], Reply]] = {
            _LAST: self._last,
            _CONSULT: self._consult,
            _MOST: self._most,
            _REQUEST: self._authorise,
        }

    @property
    def names(self) -> frozenset[str]:
        """Of the operations that there are."""
        return frozenset({_STATUS, *self._operations})

    def serve(self, call: Call, *, is_wrong: bool) -> Reply:
        """The answer to a call."""
        if call.operation == _STATUS:
            return self._dummy(is_wrong)
        who = self._who(call.fields.child("Auth"))
        if isinstance(who, _Failed):
            return self._refused(call.operation, (who.code, who.text))
        return self._operations[call.operation](call.fields, who, is_wrong)

    def fail(self, operation: str, code: int) -> Reply:
        """The answer of a service in trouble."""
        return self._refused(operation, (code, text_of(code)))

    def _who(self, auth: Fields) -> int | _Failed:
        if not auth.is_sent:
            return _Failed(500, NO_AUTH)
        cuit = auth.int64("Cuit")
        try:
            grant = self._mint.open(auth.text("Token") or "", auth.text("Sign") or "", self._now())
        except BadToken as problem:
            return _Failed(600, f"{problem}")
        if grant.service != _SERVICE:
            system = f"{_SERVICE}(Id Sistema de token es: {grant.service})"
            return _Failed(600, f"ValidacionDeToken: No valido Id Sistema: {system}")
        if cuit not in grant.relations:
            text = f"ValidacionDeToken: No apareció CUIT en lista de relaciones: {cuit}"
            return _Failed(600, text.encode().decode("latin-1"))
        return cuit

    def _dummy(self, is_wrong: bool) -> Reply:
        parts = ("AppServer", "DbServer", "AuthServer")
        state = "NO" if is_wrong else "OK"
        content = [node(name, state) for name in parts]
        return Reply(response=soap.answer(_STATUS, content, self._now()))

    def _most(self, _fields: Fields, _cuit: int, _is_wrong: bool) -> Reply:
        content = [node("RegXReq", self._terms.most_per_request)]
        return Reply(response=soap.answer(_MOST, content, self._now()))

    def _last(self, fields: Fields, cuit: int, is_wrong: bool) -> Reply:
        series = Series(cuit, fields.int32("PtoVta"), fields.int32("CbteTipo"))
        if code := self._series_problem(series):
            return self._refused(_LAST, (code, text_of(code)))
        last = self._register.last_number(series) + is_wrong
        content = _series_nodes(series.point_of_sale, series.kind, last)
        return Reply(
            response=soap.answer(_LAST, content, self._now()),
            subject=subject_of(series, last),
        )

    def _series_problem(self, series: Series) -> int | None:
        if not 1 <= series.point_of_sale <= _MOST_POINTS_OF_SALE:
            return 11000
        if class_of(series.kind) is None:
            return 11001
        business = self._registry.businesses.get(series.cuit)
        is_open = business is not None and series.point_of_sale in business.points_of_sale
        return None if is_open else 11002

    def _consult(self, fields: Fields, cuit: int, is_wrong: bool) -> Reply:
        asked = fields.child("FeCompConsReq")
        series = Series(cuit, asked.int32("PtoVta"), asked.int32("CbteTipo"))
        number = asked.int64("CbteNro")
        subject = subject_of(series, number)
        if code := self._consult_problem(series, number):
            return self._refused(_CONSULT, (code, text_of(code)), subject=subject)
        record = self._register.find(series, number)
        if record is None:
            return self._refused(_CONSULT, (602, NO_DATA), subject=subject)
        content = [node("ResultGet", record_nodes(record, is_wrong=is_wrong))]
        return Reply(response=soap.answer(_CONSULT, content, self._now()), subject=subject)

    def _consult_problem(self, series: Series, number: int) -> int | None:
        business = self._registry.businesses.get(series.cuit)
        if not 1 <= series.point_of_sale <= _MOST_POINTS_OF_SALE:
            return 10200
        if class_of(series.kind) is None:
            return 10201
        if business is None or series.point_of_sale not in business.points_of_sale:
            return 10104
        return None if number > 0 else 10202

    def _authorise(self, fields: Fields, cuit: int, is_wrong: bool) -> Reply:
        asked = fields.child("FeCAEReq")
        cab = asked.child("FeCabReq")
        sent = asked.child("FeDetReq").children("FECAEDetRequest")
        details = [read_detail(one) for one in sent]
        head = Head(
            count=cab.int32("CantReg"),
            point_of_sale=cab.int32("PtoVta"),
            kind=cab.int32("CbteTipo"),
            details=len(details),
        )
        verdict = self._authoriser.judge(cuit, head, details, self._now())
        content = verdict_nodes(verdict, self._now(), self.wrong_cae if is_wrong else None)
        return _noted(verdict, soap.answer(_REQUEST, content, self._now()))

    def _refused(self, operation: str, error: tuple[int, str], *, subject: str = "") -> Reply:
        """Required numbers are there all the same, as zeros."""
        zeros = _series_nodes(0, 0, 0) if operation == _LAST else []
        if operation == _MOST:
            zeros = [node("RegXReq", 0)]
        response = soap.answer(operation, [*zeros, soap.errors(error)], self._now())
        return soap.refused(response, [error[0]], subject)


def subject_asked(call: Call) -> str:
    """Which voucher a CAE is asked for, as far as that can be read."""
    if call.operation != _REQUEST:
        return ""
    asked, auth = call.fields.child("FeCAEReq"), call.fields.child("Auth")
    cab, details = asked.child("FeCabReq"), asked.child("FeDetReq").children("FECAEDetRequest")
    try:
        series = Series(auth.int64("Cuit"), cab.int32("PtoVta"), cab.int32("CbteTipo"))
        return subject_of(series, details[0].int64("CbteDesde") if details else 0)
    except Unreadable:
        return ""


def _noted(verdict: Verdict, response: Response) -> Reply:
    """The ledger names the first voucher, and all that have got a CAE."""
    first = verdict.vouchers[0].detail.first if verdict.vouchers else 0
    codes = [*verdict.errors, *(code for one in verdict.vouchers for code in one.observations)]
    return Reply(
        response=response,
        outcome="ok" if verdict.records else "refused",
        subject=subject_of(verdict.series, first),
        detail={"codes": codes, "caes": {one.subject: one.cae for one in verdict.records}},
    )


def _series_nodes(point_of_sale: int, kind: int, number: int) -> list[str]:
    return [
        node("PtoVta", point_of_sale),
        node("CbteTipo", kind),
        node("CbteNro", number),
    ]
