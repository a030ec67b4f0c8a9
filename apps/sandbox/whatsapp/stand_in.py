"""The WhatsApp Cloud API on loopback."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, cast

from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from apps.sandbox.bearer import Ask, BearerService, Handler
from apps.sandbox.stand_in import Reply
from apps.sandbox.webhook import Notifier
from apps.sandbox.whatsapp import delivery
from apps.sandbox.whatsapp.conversation import DISPLAYED, Conversation, StatusName, file_json
from apps.sandbox.whatsapp.delivery import Delivery, Event, Forgery
from apps.sandbox.whatsapp.graph_error import Refused, trouble
from apps.sandbox.whatsapp.media import File, MediaStore
from apps.sandbox.whatsapp.message_check import MessageCheck
from apps.sandbox.whatsapp.rate import Rate
from apps.sandbox.whatsapp.template import ApprovedTemplate

_ANSWER_WITHIN_S: Final = 10
_UNSUPPORTED: Final = "Unsupported request: the object does not exist or cannot be loaded"


class WhatsApp(BearerService):
    """One number; customers and the network act through its methods."""

    name: ClassVar[str] = "whatsapp"

    def __init__(
        self,
        *,
        access_token: str | None = None,
        app_secret: str | None = None,
        phone_number_id: str = "106540352242922",
        templates: Sequence[ApprovedTemplate] = (),
        rate: Rate | None = None,
        is_window_kept: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.access_token = access_token or f"EAA{secrets.token_urlsafe(32)}"
        self.app_secret = app_secret or secrets.token_hex(16)
        self.phone_number_id, self.account_id = phone_number_id, "102290129340398"
        self.numbers = {phone_number_id}
        """All numbers of the account; the first one is that of its webhooks, unless they say."""
        self.is_window_kept = is_window_kept
        """Whether what is no template fails 24 h after the customer's last message."""
        self.templates = {(one.name, one.language): one for one in templates}
        self.rate = rate or Rate()
        self.clock, self.conversation, self.media = clock, Conversation(clock), MediaStore()
        self.unauthorized = partial(Refused, 190, "Cannot parse access token")
        super().__init__()
        self.webhooks = Notifier(self.ledger, within_s=_ANSWER_WITHIN_S)

    def routes(self) -> Sequence[BaseRoute]:
        """The addresses of the API."""
        return [
            self._versioned("POST", "/{id}/messages", self._post_message),
            self._versioned("POST", "/{id}/media", self._upload),
            self._versioned("GET", "/{id}", self._get_media),
            self.route("GET", "/media/files/{id}", self._download),
        ]

    def _versioned(self, method: str, path: str, handler: Handler) -> BaseRoute:
        return self.route(method, f"/{{version}}{path}", handler, f"{method} {path}")

    def failure(self, status: int) -> Response:
        """Trouble in the Graph API's own format."""
        return trouble(status)

    def text(self, sender: str, body: str, **more: Any) -> Event:
        """A customer writes; `more` are `name`, `reply_to` and `at`."""
        return self.conversation.hear(sender, "text", {"body": body}, **more)

    def voice(self, sender: str, data: bytes, **more: Any) -> Event:
        """A customer records something."""
        file = self.media.keep(data, "audio/ogg; codecs=opus")
        return self.conversation.hear(sender, "audio", file_json(file, voice=True), **more)

    def file(self, sender: str, type_: str, file: File, **more: Any) -> Event:
        """A customer sends a file that was kept with `media.keep`; `type_` such as `image`."""
        shown = {name: more.pop(name) for name in ("caption", "filename") if name in more}
        return self.conversation.hear(sender, type_, file_json(file, **shown), **more)

    def choice(self, sender: str, reply_id: str, title: str, **more: Any) -> Event:
        """A customer presses a button."""
        content = {"type": "button_reply", "button_reply": {"id": reply_id, "title": title}}
        return self.conversation.hear(sender, "interactive", content, **more)

    def status(self, message_id: str, status: StatusName, error: int | None = None) -> Event:
        """Something happens to a message of the number's."""
        return self.conversation.status(self.conversation.sent[message_id], status, error)

    async def deliver(
        self,
        message_id: str,
        url: str,
        statuses: Sequence[StatusName] = ("sent", "delivered"),
        *,
        error: int | None = None,
    ) -> Delivery:
        """A message goes its way, and `url` is told; with an `error` it fails instead."""
        return await self.notify(url, *self.news(message_id, statuses, error))

    def news(
        self, message_id: str, statuses: Sequence[StatusName], error: int | None = None
    ) -> Sequence[Event]:
        """What there is to tell of a message that goes its way, or fails."""
        message = self.conversation.sent[message_id]
        is_late = self.is_window_kept and not (
            message.is_template or self.conversation.is_open(message.to)
        )
        error = 131047 if error is None and is_late else error
        if error is not None:
            return [self.status(message_id, "failed", error)]
        return [self.status(message_id, one) for one in statuses]

    async def notify(
        self, url: str, *events: Event, forgery: Forgery | None = None, number: str | None = None
    ) -> Delivery:
        """Tell `url` what has happened to one of the numbers, in one webhook."""
        whose = number or self.phone_number_id
        metadata = {"display_phone_number": DISPLAYED, "phone_number_id": whose}
        content = delivery.envelope(events, account_id=self.account_id, metadata=metadata)
        ids = [one.id for one in events]
        signed = delivery.signed(url, content, ids, self.app_secret, forgery)
        return await self.webhooks.send(signed, forgery=forgery)

    async def replay(self, sent: Delivery) -> Delivery:
        """Send the very same request once more."""
        return await self.webhooks.send(sent, is_replay=True)

    async def challenge(self, url: str, verify_token: str) -> bool:
        """Ask an address whether it wants webhooks, as Meta does once; whether it said yes."""
        began_at, nonce = time.monotonic(), str(secrets.randbelow(10**10))
        query = {"hub.mode": "subscribe", "hub.verify_token": verify_token, "hub.challenge": nonce}
        is_taken = await self.webhooks.ask(url, query) == (200, nonce)
        outcome = "ok" if is_taken else "refused"
        self.ledger.note("challenge", outcome, began_at=began_at, subject=url)
        return is_taken

    async def _post_message(self, ask: Ask) -> Reply:
        self._check_number(ask.id)
        body = _json(ask)
        if body.get("messaging_product") != "whatsapp":
            raise Refused(100, "The parameter messaging_product is required.")
        return self._mark(body) if "status" in body else self._send(body, ask)

    def _send(self, body: Mapping[str, Any], ask: Ask) -> Reply:
        MessageCheck(templates=self.templates, media_ids=self.media.files)(body)
        self.rate.take(body["to"], self.clock())
        message = self.conversation.take(body, ask.id)
        answer = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": message.to, "wa_id": message.to}],
            "messages": [] if ask.is_wrong else [{"id": message.id}],
        }
        detail = {"id": message.id, "type": body.get("type", "text")}
        return Reply(response=JSONResponse(answer), subject=message.to, detail=detail)

    def _mark(self, body: Mapping[str, Any]) -> Reply:
        if set(body) != {"messaging_product", "status", "message_id"} or body["status"] != "read":
            raise Refused(100, "a mark must have status read and a message_id")
        if body["message_id"] not in self.conversation.received:
            raise Refused(131009, "there is no such message_id")
        self.conversation.read.add(body["message_id"])
        return Reply(response=JSONResponse({"success": True}), subject=body["message_id"])

    async def _upload(self, ask: Ask) -> Reply:
        self._check_number(ask.id)
        async with ask.request.form() as form:
            if form.get("messaging_product") != "whatsapp":
                raise Refused(100, "The parameter messaging_product is required.")
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise Refused(100, "The parameter file is required.")
            if form.get("type", file.content_type) != file.content_type:
                raise Refused(100, "type must be that of the file")
            kept = self.media.keep(await file.read(), file.content_type or "")
        detail = {"bytes": len(kept.data)}
        return Reply(response=JSONResponse({"id": kept.id}), subject=kept.id, detail=detail)

    async def _get_media(self, ask: Ask) -> Reply:
        file = self.media.files.get(ask.id)
        asked_for = ask.request.query_params.get("phone_number_id", self.phone_number_id)
        if file is None or asked_for not in self.numbers:
            raise Refused(100, _UNSUPPORTED, subcode=33)
        link = self.media.link(file, self.clock())
        here = ask.request.scope["root_path"]  # with the prefix, if it is behind one
        url = str(ask.request.url.replace(path=f"{here}/media/files/{link}", query=""))
        if ask.is_wrong:
            url = url.replace("http://", "http://elsewhere.", 1)
        return Reply(response=JSONResponse(self.media.shown(file, url)))

    async def _download(self, ask: Ask) -> Reply:
        file = self.media.open(ask.id, self.clock())
        if file is None:
            return Reply(response=Response("Media not found", 404), outcome="refused")
        response = Response(file.data, media_type=file.mime_type)
        return Reply(response=response, subject=file.id, detail={"bytes": len(file.data)})

    def _check_number(self, number_id: str) -> None:
        if number_id not in self.numbers:
            raise Refused(100, _UNSUPPORTED, subcode=33)


def _json(ask: Ask) -> Mapping[str, Any]:
    if not ask.is_json:
        raise Refused(100, "the content-type must be application/json")
    try:
        found = json.loads(ask.body)
    except ValueError:
        raise Refused(100, "the body must be JSON") from None
    if not isinstance(found, dict):
        raise Refused(100, "the body must be a JSON object")
    return cast("dict[str, Any]", found)
