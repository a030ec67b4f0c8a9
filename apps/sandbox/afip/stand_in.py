"""AFIP on loopback: WSAA and WSFEv1 with an authority, a registry and a register of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from apps.sandbox.afip.authority import Authority, Credential
from apps.sandbox.afip.fields import Unreadable
from apps.sandbox.afip.register import Register
from apps.sandbox.afip.registry import Registry
from apps.sandbox.afip.terms import Terms
from apps.sandbox.afip.tokens import Mint
from apps.sandbox.afip.wsaa import Login, login_fault
from apps.sandbox.afip.wsfe import Invoicing, subject_asked
from apps.sandbox.afip.wsfe_answers import WrongCae
from apps.sandbox.afip.wsfe_soap import BadCall, Call, read_call, refused, unreadable
from apps.sandbox.stand_in import Reply, StandIn

WSAA_PATH: Final = "/ws/services/LoginCms"
WSFE_PATH: Final = "/wsfev1/service.asmx"
_MOST_BYTES: Final = 4 * 1024 * 1024
_TWO_YEARS: Final = timedelta(days=730)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Trouble:
    """An operation that fails with a code of AFIP's own."""

    operation: str
    code: int | str
    times: int
    is_done: bool


class Afip(StandIn):
    """The tax office.

    Faults of the kind `wrong`: `loginCms` gives a ticket that no service accepts, `FECAESolicitar`
    a CAE that is not the voucher's (see `wrong_cae`), `FECompConsultar` a total that is not the sum
    of its parts, `FECompUltimoAutorizado` a number that is too high, `FEDummy` parts that are down.
    """

    name: ClassVar[str] = "afip"

    def __init__(
        self,
        *,
        terms: Terms | None = None,
        now: Callable[[], datetime] = _now,
        authority: Authority | None = None,
    ) -> None:
        super().__init__()
        terms = terms or Terms()
        self.registry, self.register = Registry(), Register()
        self._authority = authority or Authority(now())
        self._now, self._troubles = now, list[_Trouble]()
        mint = Mint()
        self._login = Login(self._authority, self.registry, mint, terms, now)
        self._invoicing = Invoicing(self.registry, self.register, mint, terms, now)

    def routes(self) -> Sequence[BaseRoute]:
        """Where the real ones are, below their hosts."""
        return [
            Route(WSAA_PATH, self._serve_login, methods=["POST"]),
            Route(WSFE_PATH, self._serve_invoicing, methods=["POST"]),
        ]

    def failure(self, status: int) -> Response:
        """A page of the balancer's."""
        return HTMLResponse("<html><body><h1>Service Unavailable</h1></body></html>", status)

    # -- what the office does ---------------------------------------------------------------------

    def issue_certificate(
        self,
        cuit: str | int,
        *,
        points_of_sale: Iterable[int] = (1,),
        services: Iterable[str] = ("wsfe",),
        since: datetime | None = None,
        until: datetime | None = None,
        alias: str = "faena",
    ) -> Credential:
        """Register a business, and give it a key and a certificate for its computers."""
        business = self.registry.register(int(cuit), points_of_sale)
        business.services.update(services)
        since = since or self._now() - timedelta(minutes=1)
        return self._authority.issue(int(cuit), alias, since, until or since + _TWO_YEARS)

    def certify(
        self, key: RSAPrivateKey, cuit: str | int, validity: tuple[datetime, datetime]
    ) -> Credential:
        """A certificate for a key that there is."""
        return self._authority.certify(key, int(cuit), "platform", validity)

    def delegate(self, cuit: str | int, to: str | int) -> None:
        """Let `to` issue vouchers of `cuit`; a ticket that it has already does not know of it."""
        self.registry.delegate(int(cuit), int(to))

    def break_down(
        self, operation: str, code: int | str, *, times: int = 1, is_done: bool = False
    ) -> None:
        """Let an operation fail with a code of AFIP's: 500, 501 or 502, or a fault of `loginCms`.

        `is_done`: what was asked for is done all the same.
        """
        self._troubles.append(_Trouble(operation, code, times, is_done))

    @property
    def wrong_cae(self) -> WrongCae:
        """How a CAE is wrong where it is to be: too short, or that of no voucher."""
        return self._invoicing.wrong_cae

    @wrong_cae.setter
    def wrong_cae(self, kind: WrongCae) -> None:
        self._invoicing.wrong_cae = kind

    # -- what it answers --------------------------------------------------------------------------

    async def _serve_login(self, request: Request) -> Response:
        body, action = await _body(request), request.headers.get("soapaction")

        async def work(is_wrong: bool) -> Reply:
            if trouble := self._trouble("loginCms"):
                if trouble.is_done:
                    self._login.answer(action, body)
                return login_fault(f"{trouble.code}")
            return self._login.answer(action, body, is_wrong=is_wrong)

        return await self.play("loginCms", work)

    async def _serve_invoicing(self, request: Request) -> Response:
        try:
            call = await self._call(request)
        except BadCall as bad:
            response = bad.response

            async def refuse(_is_wrong: bool) -> Reply:
                return refused(response, ())

            return await self.play(bad.operation, refuse)
        return await self._serve_call(call)

    async def _call(self, request: Request) -> Call:
        if not request.headers.get("content-type", "").startswith("text/xml"):
            raise BadCall(Response(status_code=415))
        action = request.headers.get("soapaction")
        return read_call(action, await _body(request), self._invoicing.names)

    async def _serve_call(self, call: Call) -> Response:
        async def work(is_wrong: bool) -> Reply:
            try:
                return self._work(call, is_wrong=is_wrong)
            except Unreadable:
                return refused(unreadable(), ())

        return await self.play(call.operation, work, subject=subject_asked(call))

    def _work(self, call: Call, *, is_wrong: bool) -> Reply:
        trouble = self._trouble(call.operation)
        if trouble is None:
            return self._invoicing.serve(call, is_wrong=is_wrong)
        done = self._invoicing.serve(call, is_wrong=is_wrong) if trouble.is_done else None
        failed = self._invoicing.fail(call.operation, int(trouble.code))
        if done is None:
            return failed
        return Reply(
            response=failed.response,
            outcome=done.outcome,
            subject=done.subject,
            detail={**done.detail, "failed_with": trouble.code},
        )

    def _trouble(self, operation: str) -> _Trouble | None:
        for trouble in self._troubles:
            if trouble.operation == operation and trouble.times > 0:
                trouble.times -= 1
                return trouble
        return None


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            return b""  # no XML: refused as such
    return bytes(body)
