"""The client of AFIP's electronic invoices: WSFEv1 with tickets of WSAA.

A CAE is asked for once. AFIP knows no idempotency: if the answer is lost, `UnknownOutcome` is
raised, and `recover` asks AFIP what became of the voucher. Issue the vouchers of one series (CUIT,
point of sale, kind) one after another: two callers at once would take the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final, TypeVar

import httpx

from apps.providers.afip import codes, wsfe_answer, wsfe_request
from apps.providers.afip.answers import Authorized, Different, Issued, NotIssued, ServerStatus
from apps.providers.afip.credentials import Credentials, CredentialSource
from apps.providers.afip.cuit import parse_cuit
from apps.providers.afip.errors import (
    LoginRefused,
    NotAuthorized,
    NumberTaken,
    Permanent,
    Rejected,
    Retryable,
    UnknownOutcome,
)
from apps.providers.afip.recovery import differences
from apps.providers.afip.settings import Settings
from apps.providers.afip.soap import Node
from apps.providers.afip.tickets import MemoryTicketStore, Ticket, TicketDesk, TicketStore
from apps.providers.afip.voucher import Voucher, check_number, check_series
from apps.providers.afip.wsaa import Wsaa
from apps.providers.afip.wsfe import Wsfe
from apps.providers.afip.wsfe_answer import Refused, Result
from apps.providers.http import Exchange
from apps.providers.reading import Unreadable

T = TypeVar("T")

SERVICE: Final = "wsfe"
_MOST_BYTES: Final = 4 * 1024 * 1024
"""Of an answer."""
_STATUS: Final = "FEDummy"
_LAST: Final = "FECompUltimoAutorizado"
_CONSULT: Final = "FECompConsultar"
_REQUEST: Final = "FECAESolicitar"


def _now() -> datetime:
    return datetime.now(UTC)


class Client:
    """Authorises vouchers and looks them up.

    `credentials` finds those of a CUIT; without it, those of the settings serve all. `tickets` is
    shared by all processes of an installation; without it, this client keeps its own.
    """

    def __init__(
        self,
        settings: Settings,
        http: httpx.AsyncClient,
        *,
        credentials: CredentialSource | None = None,
        tickets: TicketStore | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        exchange = Exchange("AFIP", http, settings.timeout.total_seconds(), _MOST_BYTES)
        self._settings, self._source = settings, credentials
        self._wsfe = Wsfe(settings.wsfe_url, exchange)
        self._desk = TicketDesk(
            MemoryTicketStore() if tickets is None else tickets,
            Wsaa(settings, exchange, now=now).login,
            now=now,
            margin=settings.ticket_margin,
        )

    async def dummy(self) -> ServerStatus:
        """How the service is; needs no ticket."""
        result = await self._wsfe.ask(_STATUS, ())
        return _read(_STATUS, lambda: wsfe_answer.read_status(result))

    async def last_authorized(self, cuit: str, point_of_sale: int, kind: int) -> int:
        """The number of the last voucher of a series; 0 if there is none."""
        check_series(point_of_sale, kind)
        result = await self._ask(cuit, _LAST, wsfe_request.series(point_of_sale, kind))
        _raise_errors(_LAST, result)
        return _read(_LAST, lambda: wsfe_answer.read_last(result, point_of_sale, kind))

    async def consult(self, cuit: str, point_of_sale: int, kind: int, number: int) -> Issued | None:
        """A voucher as AFIP has it on record; None if it has none of this number."""
        check_series(point_of_sale, kind)
        check_number(number)
        content = wsfe_request.one_of_series(point_of_sale, kind, number)
        result = await self._ask(cuit, _CONSULT, content)
        if codes.NO_DATA in result.codes:
            return None
        _raise_errors(_CONSULT, result)
        return _read(_CONSULT, lambda: wsfe_answer.read_issued(result, point_of_sale, kind, number))

    async def request_cae(self, cuit: str, voucher: Voucher) -> Authorized:
        """Have a voucher authorised."""
        cuit = parse_cuit(cuit)
        result = await self._ask(cuit, _REQUEST, wsfe_request.cae_of(voucher), is_effect=True)
        if codes.INTERNAL & {*result.codes}:
            raise UnknownOutcome(
                f"a CAE was asked for and AFIP failed ({codes.meanings(result.codes)})",
                operation=_REQUEST,
            )
        try:
            answer = wsfe_answer.read_cae(result, cuit, voucher)
        except Unreadable as problem:
            raise _unknown(f"{problem}") from None
        if isinstance(answer, Refused):
            raise _rejection(answer)
        return answer

    async def recover(self, cuit: str, voucher: Voucher) -> Authorized | NotIssued | Different:
        """Find out what became of a voucher whose CAE was asked for.

        After `NotIssued`, ask for the CAE of the same voucher again. If the first request is still
        on its way then, one of the two gets `NumberTaken`: recover again.
        """
        series = voucher.point_of_sale, voucher.kind
        issued = await self.consult(cuit, *series, voucher.number)
        if issued is None:
            last = await self.last_authorized(cuit, *series)
            if last < voucher.number:
                return NotIssued(number=voucher.number, last_number=last)
            # Issued between the two questions: the first request was still on its way.
            issued = await self.consult(cuit, *series, voucher.number)
        if issued is None:
            raise Retryable("AFIP contradicts itself about a number", operation=_CONSULT)
        if found := differences(voucher, issued):
            return Different(issued=issued, differences=found)
        return Authorized(
            cae=issued.code,
            expires_on=issued.expires_on,
            number=voucher.number,
            observations=issued.observations,
        )

    async def _ask(
        self, cuit: str, operation: str, content: Iterable[Node], *, is_effect: bool = False
    ) -> Result:
        """With a ticket; if it is not accepted, once more with a new one: nothing was done then."""
        cuit, nodes = parse_cuit(cuit), list(content)

        async def ask(ticket: Ticket) -> Result:
            asked = [wsfe_request.auth(cuit, ticket), *nodes]
            return await self._wsfe.ask(operation, asked, is_effect=is_effect)

        credentials = await self._credentials(cuit)
        ticket, is_new = await self._desk.ticket(credentials, SERVICE)
        result = await ask(ticket)
        if _is_unauthenticated(result) and not is_new:
            ticket, _ = await self._desk.renew(credentials, SERVICE, instead_of=ticket)
            result = await ask(ticket)
        if _is_unauthenticated(result):
            raise NotAuthorized(
                f"AFIP does not accept a new ticket ({codes.meanings(result.codes)})",
                operation=operation,
                remarks=result.errors,
            )
        return result

    async def _credentials(self, cuit: str) -> Credentials:
        if self._source is not None:
            return await self._source(cuit)
        certificate, key = self._settings.certificate_pem, self._settings.key_pem
        if certificate is None or key is None:
            raise LoginRefused("no certificate is configured", operation="loginCms", code="none")
        return Credentials(certificate_pem=certificate, key_pem=key)


def _read(operation: str, reader: Callable[[], T]) -> T:
    """What an answer to a question says; one that cannot be read is asked for again."""
    try:
        return reader()
    except Unreadable as problem:
        raise Retryable(f"{operation} failed: {problem}", operation=operation) from None


def _is_unauthenticated(result: Result) -> bool:
    return bool(codes.NOT_AUTHENTICATED & {*result.codes})


def _raise_errors(operation: str, result: Result) -> None:
    if codes.INTERNAL & {*result.codes}:
        message = f"AFIP failed ({codes.meanings(result.codes)})"
        raise Retryable(message, operation=operation)
    if result.errors:
        raise Permanent(
            f"AFIP refused the request ({codes.meanings(result.codes)})",
            operation=operation,
            remarks=result.errors,
        )


def _rejection(refused: Refused) -> Rejected:
    remarks = refused.errors + refused.observations
    is_taken = codes.NOT_NEXT in {one.code for one in refused.errors}
    reasons = codes.meanings(one.code for one in remarks)
    return (NumberTaken if is_taken else Rejected)(
        f"AFIP refused the voucher ({reasons})", operation=_REQUEST, remarks=remarks
    )


def _unknown(problem: str) -> UnknownOutcome:
    return UnknownOutcome(f"a CAE was asked for and {problem}", operation=_REQUEST)
