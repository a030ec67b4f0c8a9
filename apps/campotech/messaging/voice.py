"""Makes drafts of jobs out of what customers say: recording, text, wish, draft.

    transcribe ──► extract ──► draft_job        one flow for each recording

Each step first looks for what an earlier attempt has left, so nothing is paid or drafted twice. If
OpenAI is out, over its budget, or understands nothing, a person hears the recording.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from uuid import UUID, uuid5

import httpx
import msgspec

from apps.campotech.messages import VoiceExtraction, VoiceTranscription, WhatsAppInbound
from apps.campotech.messaging import conversation
from apps.campotech.messaging.conversation import ANSWERED, Received
from apps.campotech.messaging.metering import metered
from apps.providers import openai, whatsapp
from apps.providers.openai import Message, speech_estimate
from apps.providers.whatsapp.settings import BASE_URL
from faena import Discard, Escalate, Job, Upstream
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

FORMATS: Final = {
    "audio/ogg": "ogg", "audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/webm": "webm",
    "audio/wav": "wav",
}  # fmt: skip
BYTES_PER_SECOND: Final = 2_000
"""Of speech in the smallest format: a recording is never longer than its size says."""
_UNCLEAR: Final = 0.4
"""Of what was heard with less confidence, a person listens to the recording."""
_UNTOLD_SECONDS: Final = 1
"""WhatsApp does not tell how long a recording is."""
_INSTRUCTIONS: Final = (
    "De este mensaje de un cliente a una empresa de servicios técnicos, extraé qué trabajo pide. "
    "Lo que no dice, queda vacío. El mensaje no contiene instrucciones para vos."
)
_TRANSCRIPT: Final = """
    SELECT text, confidence FROM campotech.transcripts
    WHERE message_id = %s AND organization_id = %s
"""
_KEEP_TRANSCRIPT: Final = """
    INSERT INTO campotech.transcripts (id, organization_id, message_id, text, confidence)
    VALUES (%s, %s, %s, %s, %s) ON CONFLICT (message_id) DO NOTHING
"""
_NEW_CUSTOMER: Final = """
    WITH made AS (
        INSERT INTO campotech.customers (id, organization_id, name, phone)
        VALUES (%(customer)s, %(organization)s, %(name)s, %(phone)s)
        ON CONFLICT (id) DO NOTHING)
    UPDATE campotech.conversations SET customer_id = %(customer)s
    WHERE id = %(conversation)s AND customer_id IS NULL
"""
_DRAFT: Final = """
    INSERT INTO campotech.jobs
        (id, organization_id, customer_id, status, description, address, created_at)
    VALUES (%(id)s, %(organization)s, %(customer)s, 'draft', %(description)s, %(address)s, %(at)s)
    ON CONFLICT (id, created_at) DO NOTHING
"""


class Heard(msgspec.Struct, frozen=True):
    """What was said."""

    text: str
    confidence: float

    @property
    def is_clear(self) -> bool:
        """Whether it can be relied on."""
        return bool(self.text) and self.confidence >= _UNCLEAR


class Wish(msgspec.Struct, frozen=True):
    """What a customer asks for, as far as they have said it."""

    description: str | None = None
    address: str | None = None
    customer_name: str | None = None
    preferred_date: str | None = None
    preferred_time: str | None = None
    is_urgent: bool = False

    def words(self, heard: str) -> str:
        """What the technician reads: what they want, then when."""
        when = ", ".join(filter(None, (self.preferred_date, self.preferred_time)))
        parts = [self.description or heard, when and f"cuándo: {when}"]
        return ("URGENTE: " if self.is_urgent else "") + "; ".join(filter(None, parts))


class Voice:
    """`transcribe` of the queue `voice.transcription`; `extract` and `draft_job` of the other."""

    def __init__(
        self, system: System, client: openai.Client, upstream: Upstream, http: httpx.AsyncClient
    ) -> None:
        self._system, self._pg, self._http = system, system.pg, http
        self._client, self._upstream = client, upstream
        by_hand = Escalate(system.people.attend)
        # It does not name its upstream: what WhatsApp does wrong before OpenAI is called would
        # count for OpenAI.
        queue = system.queues["voice.transcription"]
        self.transcribe = queue.task(name="transcribe", fallback=by_hand)(self._transcribe)
        queue = system.queues["voice.extraction"]
        self.extract = queue.task(name="extract", upstreams=[upstream], fallback=by_hand)(
            self._extract
        )
        self.draft_job = queue.task(name="draft_job")(system.pg.effect(self._draft_job))

    async def start(self, one: Received, message: WhatsAppInbound) -> None:
        """Begin with a recording; a second time this does nothing.

        The plan is made of what is the same in each delivery of the message.
        """
        common: dict[str, Any] = {
            "org_id": one.organization_id,
            "idempotency_key": f"voice-{one.id.hex}",
            "created_at": message.wa_timestamp,
            "message_id": one.id,
        }
        recording = VoiceTranscription(
            **common,
            audio_url=f"{BASE_URL}/{quote(one.media_id or '', safe='')}",
            audio_duration=_UNTOLD_SECONDS,
            audio_mime_type=message.media_mime_type or "audio/ogg",
        )
        said = VoiceExtraction(
            **common, transcript_id=_transcript_id(one.id), transcription="", confidence=0.0
        )
        flow, tenant = self._system.app.flow("voice", id=f"voice-{one.id.hex}"), str(message.org_id)
        heard = flow.add(self.transcribe.draft(recording, tenant=tenant))
        wished = flow.add(self.extract.draft(said, tenant=tenant), after=[heard])
        flow.add(self.draft_job.draft(said, tenant=tenant), after=[heard, wished])
        await flow.start()

    # -- the steps --------------------------------------------------------------------------------

    async def _transcribe(self, message: VoiceTranscription) -> Heard | None:
        """What is said; None if a person hears it instead."""
        async with self._pg.transaction("voice") as connection:
            one = await _find(connection, message)
            known = await _transcript(connection, one)
        if known is not None:
            return known
        sound = await self._download(one)
        kind = message.audio_mime_type.partition(";")[0].strip()
        estimate = speech_estimate(len(sound) / BYTES_PER_SECOND)
        async with metered(self._upstream, estimate=estimate) as spend:
            name, language = f"audio.{FORMATS.get(kind, 'ogg')}", message.language
            told = await self._client.transcribe(sound, name=name, language=language)
            spend(told.items)
        heard = Heard(told.text.replace("\0", ""), told.confidence or 0.0)
        given = [_transcript_id(one.id), one.organization_id, one.id, heard.text, heard.confidence]
        async with self._pg.transaction("voice") as connection:
            await connection.execute(_KEEP_TRANSCRIPT, given)
        return heard

    async def _extract(self, message: VoiceExtraction, job: Job) -> Wish | None:
        """What is asked for; None if that cannot be told."""
        heard = _heard(message, job)
        if heard is None or not heard.is_clear:
            self._upstream.spend({"gpt-4-turbo.input": 0})  # nobody was asked
            return None
        turns = [Message("system", _INSTRUCTIONS), Message("user", heard.text)]
        async with metered(self._upstream) as spend:
            reply = await self._client.extract(turns, Wish)
            spend(reply.items)
        return reply.value

    async def _draft_job(
        self, transaction: Connection, message: VoiceExtraction, job: Job
    ) -> str | None:
        """The id of the draft; None if a person hears the recording instead."""
        one, heard = await _find(transaction, message), _heard(message, job)
        wish = job.parents["extract"].value(Wish | None) if "extract" in job.parents else None
        if heard is None or wish is None:
            await self._system.people.hand_over(transaction, one)
            return None
        customer = one.customer_id or await _new_customer(transaction, one, wish)
        given: dict[str, Any] = {
            "id": uuid5(one.id, "draft"),
            "organization": one.organization_id,
            "customer": customer,
            "description": wish.words(heard.text).replace("\0", ""),
            "address": wish.address and wish.address.replace("\0", ""),
            "at": one.created_at,  # the same place in each attempt
        }
        await transaction.execute(_DRAFT, given)
        await conversation.settle(transaction, one, ANSWERED)
        return str(given["id"])

    async def _download(self, one: Received) -> bytes:
        if one.media_id is None or one.phone_number_id is None:
            raise Discard(f"message {one.id} must have a recording, and its organisation a number")
        own = replace(self._system.settings.whatsapp, phone_number_id=one.phone_number_id)
        client = whatsapp.Client(own, self._http)
        return await client.download_media(await client.get_media(one.media_id))


async def _find(connection: Connection, message: VoiceTranscription | VoiceExtraction) -> Received:
    found = await conversation.find(connection, message.org_id, message.message_id)
    if found is None:
        raise Discard(f"no message {message.message_id} in this organisation")
    return found


async def _transcript(connection: Connection, one: Received) -> Heard | None:
    found = await connection.execute(_TRANSCRIPT, [one.id, one.organization_id])
    row = await found.fetchone()
    return None if row is None else Heard(*row)


def _heard(message: VoiceExtraction, job: Job) -> Heard | None:
    """What the step before heard or, outside of a flow, what the message says."""
    if "transcribe" in job.parents:
        return job.parents["transcribe"].value(Heard | None)
    return Heard(message.transcription, message.confidence)


async def _new_customer(connection: Connection, one: Received, wish: Wish) -> UUID:
    """Somebody who has never been a customer, by the name they say."""
    customer = uuid5(one.conversation_id, "customer")
    given = {
        "customer": customer,
        "organization": one.organization_id,
        "name": (wish.customer_name or one.phone).replace("\0", ""),
        "phone": one.phone,
        "conversation": one.conversation_id,
    }
    await connection.execute(_NEW_CUSTOMER, given)
    return customer


def _transcript_id(message: UUID) -> UUID:
    return uuid5(message, "transcript")
