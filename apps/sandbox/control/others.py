"""The other services.

openai   say           phrase, answer: answer messages that contain a phrase
         set_quota     is_used_up: whether the account has no money left
twilio   opt_out       number: it has answered STOP
         set_landline  number: it takes no messages
         tell *        sid, status, error_code: call back, to the address given with the message
         messages      (a list) as the service shows them
push     register      → token: a new device
         unregister    token
         expire_tokens
         messages      (a list) what devices have got
maps     place         address, lat, lng: where it is
         forget        address: it is not found
         set_status    status: what is answered to every question; null: what is right
mail     forget        address: nobody has it
         mailbox       (a list) sender, recipients, subject, message_id, text
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.sandbox.control.act import Acts, Given, Nothing, one_of
from apps.sandbox.mail import MailServer
from apps.sandbox.maps import Maps, Spot
from apps.sandbox.openai import OpenAI
from apps.sandbox.push import Push
from apps.sandbox.sms import Twilio
from apps.sandbox.webhook import Courier


class _Phrase(Given, frozen=True, kw_only=True):
    phrase: str
    answer: str


class _Quota(Given, frozen=True, kw_only=True):
    is_used_up: bool


class _Phone(Given, frozen=True, kw_only=True):
    number: str


class _Callback(Given, frozen=True, kw_only=True):
    sid: str
    status: str
    error_code: int | None = None


class _Device(Given, frozen=True, kw_only=True):
    token: str


class _Address(Given, frozen=True, kw_only=True):
    address: str


class _Place(_Address, frozen=True, kw_only=True):
    lat: float
    lng: float


class _Status(Given, frozen=True, kw_only=True):
    status: str | None


def openai_acts(openai: OpenAI) -> Acts:
    """What can happen."""
    acts = Acts()

    def set_quota(given: _Quota) -> None:
        openai.is_quota_used_up = given.is_used_up

    acts.on("say", _Phrase, lambda given: openai.say(given.phrase, given.answer))
    acts.on("set_quota", _Quota, set_quota)
    return acts


def twilio_acts(twilio: Twilio, courier: Courier) -> Acts:
    """What can happen."""
    acts = Acts()

    def tell(given: _Callback) -> None:
        one_of(twilio.messages, given.sid, "sid")
        one_of(twilio.callbacks, given.sid, "the sid of a message with a callback")

        async def attempt() -> bool:
            status = await twilio.tell(given.sid, given.status, error_code=given.error_code)
            return status is not None and 200 <= status < 300

        courier.tell(attempt)

    acts.on("opt_out", _Phone, lambda given: twilio.opted_out.add(given.number))
    acts.on("set_landline", _Phone, lambda given: twilio.landlines.add(given.number))
    acts.on("tell", _Callback, tell)
    acts.things["messages"] = twilio.messages.values
    return acts


def push_acts(push: Push) -> Acts:
    """What can happen."""
    acts = Acts()

    def unregister(given: _Device) -> None:
        if given.token not in push.devices:
            raise LookupError("token must be that of a device")
        push.unregister(given.token)

    acts.on("register", Nothing, lambda _: {"token": push.register()})
    acts.on("unregister", _Device, unregister)
    acts.on("expire_tokens", Nothing, lambda _: push.expire_tokens())
    acts.things["messages"] = lambda: push.messages
    return acts


def maps_acts(maps: Maps) -> Acts:
    """What can happen."""
    acts = Acts()

    def place(given: _Place) -> None:
        maps.places[given.address] = Spot(given.lat, given.lng)
        maps.unknown.discard(given.address)

    def set_status(given: _Status) -> None:
        maps.status = given.status

    acts.on("place", _Place, place)
    acts.on("forget", _Address, lambda given: maps.unknown.add(given.address))
    acts.on("set_status", _Status, set_status)
    return acts


def mail_acts(mail: MailServer) -> Acts:
    """What can happen."""
    acts = Acts()
    acts.on("forget", _Address, lambda given: mail.unknown.add(given.address))
    acts.things["mailbox"] = lambda: _mailbox(mail)
    return acts


def _mailbox(mail: MailServer) -> Iterable[dict[str, Any]]:
    for one in mail.mailbox:
        text = one.message.get_body(("plain",))
        yield {
            "sender": one.sender,
            "recipients": one.recipients,
            "subject": str(one.message["Subject"]),
            "message_id": str(one.message["Message-ID"]),
            "text": "" if text is None else text.get_content(),
        }
