"""Chats, answers of a type and transcriptions, against the stand-in over HTTP."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import httpx
import msgspec
import pytest
from apps.providers.openai import (
    Client,
    Message,
    Permanent,
    Settings,
    Unfit,
    chat_estimate,
    speech_estimate,
)
from apps.sandbox.openai import OpenAI, spoken, tokens

from apps.sandbox import Fault

CALL = (
    "Hola, soy Marta Gómez. Necesito arreglar el termotanque en Belgrano 1450, mañana a las 10:30. "
    "Es urgente. Mi teléfono es 11 4555-1234 y puedo pagar 45.000 pesos."
)


class VoiceJob(msgspec.Struct):
    """A job that somebody asks for by voice."""

    client_name: str
    address: str | None
    phone: str | None
    description: str
    date: str | None
    amount: int | None
    is_urgent: bool
    kind: Literal["pintura", "termotanque", "otro"]
    email: str | None = None


@dataclass
class Place:
    address: str


@dataclass
class Visit:
    place: Place
    default: str | None
    photos: list[str]
    confidence: float


@pytest.mark.parametrize("model", ["gpt-4-turbo", "gpt-4", "gpt-3.5-turbo", "gpt-4o"])
async def test_a_job_is_extracted_from_a_transcript_by_every_model(
    client: Client, service: OpenAI, model: str
) -> None:
    messages = [Message("system", "Extraé el trabajo."), Message("user", CALL)]
    reply = await client.extract(messages, VoiceJob, model=model, temperature=0)
    assert reply.value == VoiceJob(
        client_name="Marta Gómez",
        address="Belgrano 1450",
        phone="11 4555-1234",
        description="arreglar el termotanque en Belgrano 1450",
        date="mañana",
        amount=45000,
        is_urgent=True,
        kind="termotanque",
        email=None,
    )
    (entry,) = service.ledger.of("chat", "ok")
    assert reply.model.startswith(model)
    assert reply.items == {
        f"{model}.input": entry.detail["input"],
        f"{model}.output": entry.detail["output"],
    }
    assert entry.detail["input"] == tokens("Extraé el trabajo.") + tokens(CALL) + 8


async def test_types_may_be_nested_and_have_fields_of_any_name(client: Client) -> None:
    reply = await client.extract([Message("user", CALL)], Visit)
    assert reply.value == Visit(Place("Belgrano 1450"), None, [], 0.9)


async def test_a_type_without_fields_is_refused_before_anything_is_sent(
    client: Client, service: OpenAI
) -> None:
    with pytest.raises(TypeError, match="must have fields"):
        await client.extract([Message("user", "hola")], list[str])
    assert service.ledger.entries == []


async def test_a_chat_without_a_type_is_answered_with_text(client: Client, service: OpenAI) -> None:
    service.say("horario", "Atendemos de 8 a 18.")
    reply = await client.chat([Message("user", "¿Qué HORARIO tienen?")])
    assert reply.value == "Atendemos de 8 a 18."
    assert reply.items == {"gpt-4-turbo.input": 9, "gpt-4-turbo.output": 5}
    assert (await client.chat([Message("user", "Gracias")])).value == "Entendido: Gracias"


async def test_an_answer_that_does_not_fit_can_be_asked_for_again_and_is_paid(
    client: Client, service: OpenAI
) -> None:
    service.faults.add(Fault(kind="wrong", times=1))
    with pytest.raises(Unfit, match="the model's answer does not fit VoiceJob") as caught:
        await client.extract([Message("user", CALL)], VoiceJob)
    assert caught.value.items["gpt-4-turbo.input"] == tokens(CALL) + 4
    assert (await client.extract([Message("user", CALL)], VoiceJob)).value.is_urgent


async def test_an_answer_that_is_cut_short_is_no_answer(client: Client) -> None:
    with pytest.raises(Unfit, match="cut short") as caught:
        await client.extract([Message("user", CALL)], VoiceJob, max_tokens=3)
    assert caught.value.code == "length"
    assert caught.value.items["gpt-4-turbo.output"] == 3


async def test_a_recording_is_transcribed(client: Client, service: OpenAI) -> None:
    transcript = await client.transcribe(spoken(CALL, 61.5), name="audio.wav")
    assert (transcript.text, transcript.seconds) == (CALL, 61.5)
    assert transcript.language == "spanish"
    assert transcript.confidence == pytest.approx(0.905, abs=0.001)
    assert transcript.items == {"whisper-1.minute": 2}
    (entry,) = service.ledger.of("transcribe", "ok")
    assert entry.detail == {"model": "whisper-1", "seconds": 61.5}


async def test_an_unclear_recording_has_a_low_confidence_and_a_silent_one_has_none(
    client: Client,
) -> None:
    unclear = await client.transcribe(spoken("necesito (inaudible)"))
    assert unclear.confidence == pytest.approx(0.223, abs=0.001)
    silent = await client.transcribe(spoken(""))
    assert (silent.text, silent.confidence) == ("", None)


async def test_a_recording_that_is_too_large_is_not_sent(client: Client, service: OpenAI) -> None:
    with pytest.raises(Permanent, match="at most"):
        await client.transcribe(bytes(25 * 2**20 + 1))
    assert service.ledger.entries == []


async def test_what_was_said_is_not_shown(client: Client) -> None:
    asked = Message("user", "secreto")
    shown = [asked, await client.chat([asked]), await client.transcribe(spoken("secreto"))]
    assert "secreto" not in repr(shown)


async def test_the_shared_http_client_stays_open(client: Client, http: httpx.AsyncClient) -> None:
    await client.chat([Message("user", "hola")])
    assert not http.is_closed


async def test_only_the_given_organization_is_told(
    settings: Settings, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[httpx.Headers] = []

    async def note(request: httpx.Request) -> None:
        seen.append(request.headers)

    http.event_hooks = {"request": [note]}
    monkeypatch.setenv("OPENAI_ORG_ID", "org-ambient")
    await Client(settings, http).chat([Message("user", "hola")])
    own = dataclasses.replace(settings, organization="org-own", project="proj")
    await Client(own, http).chat([Message("user", "hola")])
    assert [one.get("openai-organization") for one in seen] == [None, "org-own"]
    assert [one.get("openai-project") for one in seen] == [None, "proj"]


def test_estimates_are_never_too_low() -> None:
    text = "¿Cuánto sale pintar un ñandú?"
    estimate = chat_estimate([text], model="gpt-4", max_tokens=7)
    assert estimate["gpt-4.output"] == 7
    assert estimate["gpt-4.input"] >= len(text.encode())
    assert speech_estimate(0) == {"whisper-1.minute": 1}
    assert speech_estimate(60) == {"whisper-1.minute": 1}
    assert speech_estimate(60.1) == {"whisper-1.minute": 2}


def test_settings_are_read_from_the_environment_and_do_not_show_the_key() -> None:
    settings = Settings.from_env({"OPENAI_API_KEY": "sk-secret", "OPENAI_CHAT_MODEL": "gpt-4"})
    assert (settings.key, settings.chat_model) == ("sk-secret", "gpt-4")
    assert settings.base_url == "https://api.openai.com/v1"
    assert "sk-secret" not in repr(settings)
    with pytest.raises(ValueError, match="OPENAI_API_KEY must be set"):
        Settings.from_env({})


@pytest.mark.parametrize("url", ["http://api.openai.com/v1", "ftp://127.0.0.1", "", "127.0.0.1"])
def test_a_key_is_not_sent_in_plain_text_to_another_machine(url: str) -> None:
    with pytest.raises(ValueError, match="base_url must begin with https"):
        Settings(key="k", base_url=url)
