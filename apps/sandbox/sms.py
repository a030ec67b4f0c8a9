"""A stand-in for Twilio's messages: checks what Twilio checks, and signs its callbacks.

Numbers in `opted_out` have answered STOP, those in `landlines` take no messages. A message is
`queued`; `tell` says what becomes of it, to the address that was given with it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from apps.sandbox.stand_in import Refused, Reply, StandIn
from apps.sandbox.webhook import Notifier, Webhook

_NUMBER: Final = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)
_PATH: Final = "/2010-04-01/Accounts/{account}/"
_FORM: Final = "application/x-www-form-urlencoded"
_MOST_CHARACTERS: Final = 1600
_ANSWER_WITHIN_S: Final = 15


class _Refusal(Refused):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code

    @property
    def response(self) -> Response:
        return _problem(self.status, self.code, str(self))

    @property
    def detail(self) -> dict[str, Any]:
        return {"code": self.code}


class Twilio(StandIn):
    """One account with its numbers."""

    name: ClassVar[str] = "twilio"

    def __init__(
        self,
        account_sid: str,
        auth_token: str,
        *,
        numbers: Collection[str] = (),
        services: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.webhooks = Notifier(self.ledger, within_s=_ANSWER_WITHIN_S, taken=range(200, 300))
        self._account, self._token = account_sid, auth_token
        self._numbers, self._services = numbers, services
        self._sids = itertools.count(1)
        self.messages: dict[str, dict[str, Any]] = {}
        """As they are shown, by sid, in the order in which they were accepted."""
        self.callbacks: dict[str, str] = {}
        self.opted_out: set[str] = set()
        self.landlines: set[str] = set()

    def routes(self) -> Sequence[BaseRoute]:
        """The messages of accounts."""
        return [
            Route(f"{_PATH}Messages.json", self._send, methods=["POST"]),
            Route(f"{_PATH}Messages.json", self._list, methods=["GET"]),
            Route(f"{_PATH}Messages/{{sid}}.json", self._show, methods=["GET"]),
        ]

    def failure(self, status: int) -> Response:
        """In Twilio's format."""
        code, words = (20429, "Too Many Requests") if status == 429 else (20500, "Server Error")
        return _problem(status, code, words)

    async def tell(self, sid: str, status: str, *, error_code: int | None = None) -> int | None:
        """Change what has become of a message, and call back; the status of the answer."""
        shown = self.messages[sid]
        shown |= {"status": status, "error_code": error_code}
        if status not in ("queued", "accepted", "scheduled"):
            shown["date_sent"] = shown["date_sent"] or _now()
        fields = {
            "MessageSid": sid,
            "MessageStatus": status,
            "To": shown["to"],
            "From": shown["from"] or "",
            "AccountSid": self._account,
            **({"ErrorCode": str(error_code)} if error_code else {}),
        }
        url = self.callbacks[sid]
        headers = {"x-twilio-signature": self.signature(url, fields), "content-type": _FORM}
        callback = Webhook(url=url, headers=headers, body=urlencode(fields).encode())
        return (await self.webhooks.send(callback)).status

    def signature(self, url: str, fields: dict[str, str]) -> str:
        """What a callback is signed with."""
        text = url + "".join(name + fields[name] for name in sorted(fields))
        digest = hmac.new(self._token.encode(), text.encode(), hashlib.sha1).digest()
        return base64.b64encode(digest).decode()

    async def _send(self, request: Request) -> Response:
        body = await request.body()

        async def work(is_wrong: bool) -> Reply:
            if request.headers.get("content-type", "").partition(";")[0] != _FORM:
                raise _Refusal(400, 21604, "A 'To' phone number is required.")
            return self._accept(_fields(body), is_wrong)

        return await self._answer("send", request, work)

    async def _list(self, request: Request) -> Response:
        async def work(_: bool) -> Reply:
            to, size = request.query_params.get("To"), request.query_params.get("PageSize", "50")
            if not size.isdigit() or not 1 <= int(size) <= 1000:
                raise _Refusal(400, 20001, "Page size must be from 1 to 1000.")
            newest = reversed(self.messages.values())
            found = [one for one in newest if to in (None, one["to"])][: int(size)]
            page = {"messages": found, "page": 0, "page_size": int(size), "next_page_uri": None}
            return Reply(response=JSONResponse(page), subject=to or "")

        return await self._answer("list", request, work)

    async def _show(self, request: Request) -> Response:
        async def work(_: bool) -> Reply:
            sid = request.path_params["sid"]
            if sid not in self.messages:
                raise _Refusal(404, 20404, "The requested resource was not found")
            return Reply(response=JSONResponse(self.messages[sid]), subject=sid)

        return await self._answer("show", request, work)

    async def _answer(
        self, operation: str, request: Request, work: Callable[[bool], Awaitable[Reply]]
    ) -> Response:
        async def checked(is_wrong: bool) -> Reply:
            self._check_account(request)
            return await work(is_wrong)

        return await self.play(operation, checked)

    def _check_account(self, request: Request) -> None:
        own = base64.b64encode(f"{self._account}:{self._token}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {own}":
            raise _Refusal(401, 20003, "Authenticate")
        if request.path_params["account"] != self._account:
            raise _Refusal(404, 20404, "The requested resource was not found")

    def _accept(self, form: dict[str, str], is_wrong: bool) -> Reply:
        self._check_recipient(form.get("To", ""))
        self._check_sender(form)
        body = form.get("Body", "")
        if not body:
            raise _Refusal(400, 21602, "Message body is required.")
        if len(body) > _MOST_CHARACTERS:
            raise _Refusal(400, 21617, "The message body exceeds the 1600 character limit.")
        shown = self._shown(form)
        self.messages[shown["sid"]] = shown
        if "StatusCallback" in form:
            self.callbacks[shown["sid"]] = form["StatusCallback"]
        answer = {**shown, "status": "failed", "error_code": 30003} if is_wrong else shown
        detail = {"sid": shown["sid"], "segments": shown["num_segments"]}
        return Reply(response=JSONResponse(answer, 201), subject=shown["to"], detail=detail)

    def _check_recipient(self, to: str) -> None:
        if not to:
            raise _Refusal(400, 21604, "A 'To' phone number is required.")
        if not _NUMBER.fullmatch(to):
            raise _Refusal(400, 21211, f"The 'To' number {to} is not a valid phone number.")
        if to in self.opted_out:
            raise _Refusal(400, 21610, "Attempt to send to unsubscribed recipient")
        if to in self.landlines:
            raise _Refusal(400, 21614, f"'To' number {to} is not a valid mobile number")

    def _check_sender(self, form: dict[str, str]) -> None:
        sender, service = form.get("From"), form.get("MessagingServiceSid")
        if sender is None and service is None:
            raise _Refusal(400, 21603, "A 'From' phone number is required.")
        if sender is not None and sender not in self._numbers:
            raise _Refusal(400, 21606, f"The 'From' number {sender} is not of your account.")
        if service is not None and service not in self._services:
            raise _Refusal(404, 21701, "The Messaging Service does not exist")

    def _shown(self, form: dict[str, str]) -> dict[str, Any]:
        sid, is_from_service = f"SM{next(self._sids):032x}", "MessagingServiceSid" in form
        return {
            "sid": sid,
            "account_sid": self._account,
            "status": "accepted" if is_from_service else "queued",
            "to": form["To"],
            "from": form.get("From"),
            "messaging_service_sid": form.get("MessagingServiceSid"),
            "body": form["Body"],
            "num_segments": "0" if is_from_service else str(_segments(form["Body"])),
            "direction": "outbound-api",
            "price": None,
            "price_unit": "USD",
            "error_code": None,
            "error_message": None,
            "date_created": _now(),
            "date_sent": None,
            "uri": f"/2010-04-01/Accounts/{self._account}/Messages/{sid}.json",
        }


def _segments(text: str) -> int:
    """Simply: 160 characters of ASCII with ñ and é, or 70 of any others; 153 and 67 of several."""
    is_plain = text.replace("ñ", "n").replace("é", "e").isascii()
    alone, among = (160, 153) if is_plain else (70, 67)
    return 1 if len(text) <= alone else -(-len(text) // among)


def _fields(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise _Refusal(400, 21604, "A 'To' phone number is required.") from None


def _problem(status: int, code: int, message: str) -> Response:
    more = f"https://www.twilio.com/docs/errors/{code}"
    body = {"code": code, "message": message, "more_info": more, "status": status}
    return JSONResponse(body, status)


def _now() -> str:
    return format_datetime(datetime.now(UTC))
