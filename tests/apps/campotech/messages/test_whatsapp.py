"""WhatsApp: what a message needs depends on its kind, and the error names the field."""

from __future__ import annotations

from typing import Any

import pytest

from apps.campotech.messages import WhatsAppInbound, WhatsAppOutbound
from tests.apps.campotech.messages.judge import OK, judged
from tests.apps.campotech.messages.samples import ID, sample

A_UUID = "must be a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e"
A_URL = "must be an http or https URL"
A_PHONE = r"string should match pattern '^\+54[0-9]{10,11}$'"
A_TEMPLATE = "string should match pattern '^[a-z0-9_]{1,512}$'"
OUTBOUND_KINDS = "input should be 'text', 'template' or 'media'"
INBOUND_KINDS = "input should be 'text', 'voice', 'image', 'document' or 'interactive'"
AN_INSTANT = "must be an instant with its offset, such as 2025-12-01T10:00:00Z"
TOO_LONG = "text string should have at most 4096 characters"
LINK = "https://media.example.com/a.jpg"


def text(**changes: Any) -> dict[str, Any]:
    """Fields of a text message."""
    none = {"templateName": ..., "templateParams": ...}
    return {"messageType": "text", "text": "hola", **none, **changes}


def media(**changes: Any) -> dict[str, Any]:
    """Fields of a media message."""
    none = {"templateName": ..., "templateParams": ...}
    return {"messageType": "media", "mediaUrl": LINK, "mediaCaption": "foto", **none, **changes}


OUTBOUND: list[tuple[dict[str, Any], str]] = [
    (text(), OK),
    (media(), OK),
    (media(mediaCaption=...), OK),
    *(({"messageType": bad}, f"messageType {OUTBOUND_KINDS}") for bad in ("voice", "", None)),
    *(({"recipientPhone": good}, OK) for good in ("+541123456789", "+5491123456789")),
    *(({"recipientPhone": bad}, f"recipientPhone {A_PHONE}")
      for bad in ("+54112345678", "+549112345678901", "541123456789", "+551123456789", "",
                  "+54 1123456789", "+541123456789\n", "\n+541123456789", "+54" + "\u0967" * 10,
                  "+54112345678a")),
    ({"recipientPhone": 541123456789}, "recipientPhone input should be a valid string"),
    *(({name: ...}, OK) for name in ("customerId", "jobId", "invoiceId", "templateParams")),
    *(({name: "x"}, f"{name} {A_UUID}") for name in ("customerId", "jobId", "invoiceId")),
    (text(text="x"), OK),
    (text(text="x" * 4096), OK),
    (text(text="x" * 4097), TOO_LONG),
    (text(text=""), "text must not be blank"),
    (text(text=" \n\t"), "text must not be blank"),
    (text(text=...), "text is required in a text message"),
    (text(text=None), "text is required in a text message"),
    (text(text=5), "text input should be a valid string"),
    (text(templateName="hola"), "templateName is only for a template message"),
    (text(templateParams=["a"]), "templateParams is only for a template message"),
    (text(templateParams=[]), OK),
    (text(mediaUrl=LINK), "mediaUrl is only for a media message"),
    (text(mediaCaption="a"), "mediaCaption is only for a media message"),
    ({"templateName": "a"}, OK),
    ({"templateName": "a_1" + "x" * 509}, OK),
    ({"templateName": "x" * 513}, f"templateName {A_TEMPLATE}"),
    *(({"templateName": bad}, f"templateName {A_TEMPLATE}") for bad in ("", "Hola", "a b", "a\n")),
    ({"templateName": ...}, "template_name is required in a template message"),
    ({"templateName": None}, "templateName is required in a template message"),
    ({"templateParams": ["", "a", "ñ"]}, OK),
    ({"templateParams": ["a", 5]}, "templateParams[1] input should be a valid string"),
    ({"templateParams": "a"}, "templateParams input should be a valid list"),
    ({"text": "hola"}, "text is only for a text message"),
    ({"mediaUrl": LINK}, "mediaUrl is only for a media message"),
    (media(mediaUrl=...), "media_url is required in a media message"),
    *((media(mediaUrl=good), OK)
      for good in ("http://a", "https://a.example:8443/b?c=d%20e#f", "HTTPS://A.EXAMPLE",
                   "https://[::1]/a", "https://ñandú.example/á")),
    *((media(mediaUrl=bad), f"mediaUrl {A_URL}")
      for bad in ("", "a", "/a", "a.example/b", "ftp://a.example", "file:///etc/passwd",
                  "javascript:alert(1)", "https://", "https:///a", "https://a b", "https://a\n",
                  "https://[::1", "https://a:port/", "https://a:70000/", "data:text/plain,a")),
    (media(mediaUrl="https://a/" + "x" * 2039),
     "mediaUrl string should have at most 2048 characters"),
    (media(mediaUrl="https://a/" + "x" * 2038), OK),
    (media(mediaCaption="x" * 1024), OK),
    (media(mediaCaption="x" * 1025), "mediaCaption string should have at most 1024 characters"),
    (media(text="hola"), "text is only for a text message"),
    ({"messageType": "voice", "recipientPhone": "1", "text": "x" * 4097},
     f"messageType {OUTBOUND_KINDS}; recipientPhone {A_PHONE}; {TOO_LONG}"),
]  # fmt: skip

INBOUND: list[tuple[dict[str, Any], str]] = [
    *(({"messageType": kind}, OK)
      for kind in ("text", "voice", "image", "document", "interactive")),
    *(({"messageType": bad}, f"messageType {INBOUND_KINDS}") for bad in ("audio", "", None)),
    *(({name: ""}, f"{name} string should have at least 1 character")
      for name in ("waMessageId", "senderPhone", "mediaId", "mediaMimeType")),
    *(({name: 5}, f"{name} input should be a valid string")
      for name in ("waMessageId", "senderPhone", "mediaId", "mediaMimeType", "content")),
    ({"senderPhone": "+15551234567"}, OK),
    *(({name: ...}, OK) for name in ("content", "mediaId", "mediaMimeType")),
    ({"content": ""}, OK),
    ({"content": "x" * 10_000}, OK),
    ({"waTimestamp": "1701234567"}, f"waTimestamp {AN_INSTANT}"),
    ({"waTimestamp": "2025-12-01T10:00:00"}, "waTimestamp input should have timezone info"),
    *(({"isBusinessInitiated": good}, OK) for good in (True, False)),
    *(({"isBusinessInitiated": bad}, "isBusinessInitiated input should be a valid boolean")
      for bad in (0, "false", None)),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), OUTBOUND)
async def test_a_message_to_a_customer_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("whatsapp.outbound", sample("whatsapp.outbound", **changes)) == says


@pytest.mark.parametrize(("changes", "says"), INBOUND)
async def test_a_message_of_a_customer_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("whatsapp.inbound", sample("whatsapp.inbound", **changes)) == says


def test_a_link_is_sent_as_it_was_written() -> None:
    link = "HTTPS://Media.Example.com/a/../b?X-Sig=a%2fb&c"
    message = WhatsAppOutbound.model_validate(sample("whatsapp.outbound", **media(mediaUrl=link)))
    assert message.media_url == link


def test_a_message_has_only_what_was_given() -> None:
    message = WhatsAppOutbound.model_validate(
        sample("whatsapp.outbound", **text(customerId=..., jobId=ID, invoiceId=...))
    )
    assert (message.customer_id, message.template_name, message.template_params) == (None, None, [])
    assert (message.media_url, message.media_caption, message.invoice_id) == (None, None, None)
    bare = sample("whatsapp.inbound", content=..., mediaId=..., mediaMimeType=...)
    assert WhatsAppInbound.model_validate(bare).media_id is None
