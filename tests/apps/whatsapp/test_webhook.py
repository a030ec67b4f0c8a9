"""Webhooks count if Meta signed their bytes; one odd entry does not lose the others."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from apps.providers.whatsapp import (
    Batch,
    MediaMessage,
    OtherMessage,
    ReplyMessage,
    ReportedError,
    Settings,
    Status,
    TextMessage,
    WebhookRefused,
    answer_challenge,
    read_webhook,
)
from hypothesis import given
from hypothesis import strategies as st

SETTINGS = Settings(
    access_token="x", phone_number_id="1", app_secret="s3cret", verify_token="our-word"
)
AT = datetime(2023, 10, 11, 16, 53, 43, tzinfo=UTC)
BASE: dict[str, Any] = {
    "id": "wamid.1",
    "sender": "5491155551234",
    "sender_name": "Ana",
    "at": AT,
    "phone_number_id": "106",
}


def sign(body: bytes, secret: str = "s3cret") -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def read(body: Any, **headers: str) -> Batch:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_webhook(SETTINGS, headers={"X-Hub-Signature-256": sign(raw)} | headers, body=raw)


def entry(field: str = "messages", **value: Any) -> dict[str, Any]:
    whole = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "54911", "phone_number_id": "106"},
        "contacts": [{"profile": {"name": "Ana"}, "wa_id": "5491155551234"}],
        **value,
    }
    return {"id": "5467", "changes": [{"field": field, "value": whole}]}


def envelope(*entries: Any) -> dict[str, Any]:
    return {"object": "whatsapp_business_account", "entry": list(entries)}


def message(type_: str, content: Any = None, **more: Any) -> dict[str, Any]:
    whole = {
        "from": "5491155551234",
        "id": "wamid.1",
        "timestamp": "1697043223",
        "type": type_,
        **more,
    }
    return whole if content is None else whole | {type_: content}


def one(given: dict[str, Any]) -> Any:
    (found,) = read(envelope(entry(messages=[given]))).messages
    return found


def test_a_text_is_read() -> None:
    assert one(message("text", {"body": "¿hola?"})) == TextMessage(**BASE, text="¿hola?")


def test_a_reply_names_what_it_answers() -> None:
    given = message("text", {"body": "sí"}, context={"from": "54911", "id": "wamid.0"})
    assert one(given).reply_to == "wamid.0"


@pytest.mark.parametrize(("is_voice", "kind"), [(True, "voice"), (False, "audio")])
def test_a_recording_is_known_from_other_sounds(is_voice: bool, kind: Any) -> None:
    audio = {"mime_type": "audio/ogg; codecs=opus", "sha256": "m04=", "id": "12", "voice": is_voice}
    assert one(message("audio", audio)) == MediaMessage(
        **BASE, kind=kind, media_id="12", mime_type="audio/ogg; codecs=opus", sha256="m04="
    )


def test_pictures_and_documents_are_read() -> None:
    image = {"id": "1", "mime_type": "image/jpeg", "sha256": "a", "caption": "la bomba"}
    document = {"id": "2", "mime_type": "application/pdf", "filename": "presupuesto.pdf"}
    assert one(message("image", image)).caption == "la bomba"
    assert one(message("document", document)).filename == "presupuesto.pdf"


@pytest.mark.parametrize(
    ("type_", "content"),
    [
        ("interactive", {"type": "button_reply", "button_reply": {"id": "yes", "title": "Sí"}}),
        (
            "interactive",
            {"type": "list_reply", "list_reply": {"id": "yes", "title": "Sí", "description": "d"}},
        ),
        ("button", {"payload": "yes", "text": "Sí"}),
    ],
)
def test_a_choice_is_read(type_: str, content: Any) -> None:
    assert one(message(type_, content)) == ReplyMessage(**BASE, reply_id="yes", title="Sí")


def test_other_messages_keep_their_type() -> None:
    errors = [{"code": 131051, "title": "unknown", "error_data": {"details": "not supported"}}]
    assert one(message("location", {"latitude": 1.5})) == OtherMessage(**BASE, type="location")
    found = one(message("unsupported", errors=errors))
    assert found.errors == (ReportedError(code=131051, title="unknown", details="not supported"),)
    flow = message("interactive", {"type": "nfm_reply", "nfm_reply": {}})
    assert one(flow) == OtherMessage(**BASE, type="nfm_reply")


def test_statuses_are_read() -> None:
    common = {"id": "wamid.9", "timestamp": "1697043223", "recipient_id": "5491155551234"}
    statuses = [
        common | {"status": "sent", "biz_opaque_callback_data": "msg-1"},
        common | {"status": "delivered", "conversation": {"id": "7"}, "pricing": {}},
        common | {"status": "read"},
        common | {"status": "failed", "errors": [{"code": 131047, "title": "Re-engagement"}]},
    ]
    found = read(envelope(entry(statuses=statuses))).statuses
    assert [one.status for one in found] == ["sent", "delivered", "read", "failed"]
    assert found[0] == Status(
        message_id="wamid.9",
        status="sent",
        at=AT,
        recipient="5491155551234",
        phone_number_id="106",
        callback_data="msg-1",
    )
    assert found[1].key == "wamid.9:delivered"
    assert [(one.code, one.kind) for one in found[3].errors] == [(131047, "outside_window")]


def test_an_error_of_the_account_is_told() -> None:
    (found,) = read(envelope(entry(errors=[{"code": 130429, "title": "Rate limit hit"}]))).errors
    assert (found.code, found.kind) == (130429, "rate_limited")
    assert ReportedError(code=999_999, title="").kind == "permanent"


def test_all_entries_and_changes_of_a_batch_are_read() -> None:
    text = message("text", {"body": "hola"})
    first, second = (
        entry(messages=[text, text | {"id": "wamid.2"}]),
        entry(
            messages=[text | {"id": "wamid.3"}],
            metadata={"phone_number_id": "107"},
        ),
    )
    second["changes"] += entry(messages=[text | {"id": "wamid.4"}])["changes"]
    found = read(envelope(first, second)).messages
    assert [one.id for one in found] == ["wamid.1", "wamid.2", "wamid.3", "wamid.4"]
    assert [one.phone_number_id for one in found] == ["106", "106", "107", "106"]


def test_other_fields_are_passed_over() -> None:
    assert read(envelope(entry("message_template_status_update"))) == Batch()
    assert read(envelope()) == Batch()


ODD: list[Any] = [
    1,
    None,
    {},
    message("text"),
    message("text", {"body": 5}),
    message("text", {"body": "x"}, timestamp="yesterday"),
    message("text", {"body": "x"}, timestamp="9" * 19),
    message("text", {"body": "x"}, timestamp=-1),
    message("text", {"body": "x"}) | {"id": None},
    message("text", {"body": "x"}) | {"from": {"$ne": 1}},
    message("text", {"body": "x"}, context=[]),
    message("audio", {"id": "1"}),
    message("audio", {"mime_type": "audio/ogg"}),
    message("interactive", {"type": "button_reply"}),
    message("button", {}),
    message("unsupported", errors=[{"code": "many"}]),
]


@pytest.mark.parametrize("odd", ODD)
def test_one_that_cannot_be_read_does_not_lose_the_others(odd: Any) -> None:
    good = message("text", {"body": "hola"})
    found = read(envelope(entry(messages=[odd, good])))
    assert ([one.id for one in found.messages], found.skipped) == (["wamid.1"], 1)


@pytest.mark.parametrize(
    "odd",
    [
        1,
        {"changes": 5},
        {"changes": [5]},
        {"changes": [{}]},
        {"changes": [{"field": "messages", "value": 3}]},
        {"changes": [{"field": "messages", "value": {"messages": []}}]},
        entry(messages="x"),
        entry(statuses=[1]),
        entry(errors=[{}]),
        entry(contacts=[1]),
        entry(contacts=[{"wa_id": 5}]),
    ],
)
def test_an_odd_entry_does_not_lose_the_others(odd: Any) -> None:
    good = entry(messages=[message("text", {"body": "hola"})])
    found = read(envelope(odd, good))
    assert ([one.id for one in found.messages], found.skipped) == (["wamid.1"], 1)


def test_somebody_without_a_number_has_no_name() -> None:
    contacts = [{"user_id": "US.1", "profile": {"name": "Nadie"}}]
    (found,) = read(
        envelope(entry(contacts=contacts, messages=[message("text", {"body": "x"})]))
    ).messages
    assert found.sender_name == ""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        b'{"object": "page"}',
        b" " * (4 * 1024 * 1024 + 1),
    ],
)
def test_what_is_not_whatsapps_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookRefused, match=r"cannot be read|at most"):
        read(body)


BODY = json.dumps(envelope(entry(messages=[message("text", {"body": "hola"})]))).encode()


@pytest.mark.parametrize(
    "header",
    [
        "",
        "sha256=",
        "sha256=" + "0" * 64,
        sign(BODY).removeprefix("sha256="),
        sign(BODY).upper(),
        sign(BODY).replace("sha256", "sha1"),
        sign(BODY, "other"),
        sign(BODY, ""),
        sign(BODY + b" "),
        sign(BODY) + " ",
        "é" * 71,
        "\udcff",
    ],
)
def test_a_wrong_signature_is_refused(header: str) -> None:
    with pytest.raises(WebhookRefused, match="signature of a webhook is wrong"):
        read_webhook(SETTINGS, headers={"x-hub-signature-256": header}, body=BODY)


def test_a_missing_signature_is_refused() -> None:
    with pytest.raises(WebhookRefused, match="is wrong"):
        read_webhook(SETTINGS, headers={"x-hub-signature": sign(BODY)}, body=BODY)


def test_without_a_secret_nothing_is_accepted() -> None:
    settings = Settings(access_token="x", phone_number_id="1")
    with pytest.raises(WebhookRefused, match="no app_secret is set"):
        read_webhook(settings, headers={"x-hub-signature-256": sign(BODY, "")}, body=BODY)
    query = {"hub.mode": "subscribe", "hub.verify_token": "", "hub.challenge": "1"}
    with pytest.raises(WebhookRefused, match="no verify_token is set"):
        answer_challenge(settings, query)


def test_the_raw_bytes_are_what_is_signed() -> None:
    again = json.dumps(json.loads(BODY), separators=(",", ":")).encode()
    assert again != BODY
    with pytest.raises(WebhookRefused):
        read_webhook(SETTINGS, headers={"x-hub-signature-256": sign(BODY)}, body=again)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["entry", "changes", "field", "value", "messages", "metadata", "id"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_whatever_is_signed_is_read_or_skipped(value: Any) -> None:
    found = read({"object": "whatsapp_business_account", "entry": value} if value else envelope())
    assert isinstance(found, Batch)


CHALLENGE = {"hub.mode": "subscribe", "hub.verify_token": "our-word", "hub.challenge": "1158201444"}


def test_a_challenge_is_answered() -> None:
    assert answer_challenge(SETTINGS, CHALLENGE) == "1158201444"


@pytest.mark.parametrize(
    "wrong",
    [
        {"hub.mode": "unsubscribe"},
        {"hub.mode": ""},
        {"hub.verify_token": "other"},
        {"hub.verify_token": "é"},
        {"hub.verify_token": "\udcff"},
        {"hub.challenge": ""},
        {"hub.challenge": "<script>"},
        {"hub.challenge": "1" * 1025},
    ],
)
def test_a_wrong_challenge_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(WebhookRefused, match="a challenge must be"):
        answer_challenge(SETTINGS, CHALLENGE | wrong)


def test_words_of_customers_do_not_show() -> None:
    found = read(envelope(entry(messages=[message("text", {"body": "secreto"})])))
    assert "secreto" not in repr(found)
    assert "Ana" not in repr(found)
