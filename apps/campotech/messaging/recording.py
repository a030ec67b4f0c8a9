"""Writes down what is said in a recording that belongs to a job.

    1. look     for what an earlier attempt has written down
    2. fetch    the recording, from where recordings may be, and not more than a model takes
    3. ask      the model, and keep its words

A process that dies before the end of 3 asks again: that costs, and there is one transcript.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

import httpx

from apps.campotech.messages.dispatched import VoiceTranscribe
from apps.campotech.messaging.metering import metered
from apps.campotech.messaging.voice import BYTES_PER_SECOND, FORMATS, Heard
from apps.campotech.tiers import BACKGROUND
from apps.providers import openai
from apps.providers.openai import speech_estimate
from apps.providers.openai.client import MOST_AUDIO
from faena import Discard, Job, Upstream

if TYPE_CHECKING:
    from apps.campotech.system import System

_PATIENCE_S: Final = 60.0
_GONE: Final = frozenset({401, 403, 404, 410})
_OWN: Final = "SELECT 1 FROM campotech.jobs WHERE id = %s AND organization_id = %s"
_KNOWN: Final = "SELECT text, confidence FROM campotech.transcripts WHERE id = %s"
_KEEP: Final = """
    INSERT INTO campotech.transcripts (id, organization_id, job_id, text, confidence)
    VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING
"""


class Unfetched(Exception):
    """The recording did not come; it may the next time."""


class Recordings:
    """The task `transcribe_recording` of the queue `voice.transcription`."""

    def __init__(self, system: System, client: openai.Client, upstream: Upstream) -> None:
        self._system, self._pg = system, system.pg
        self._client, self._upstream = client, upstream
        queue = system.queues["voice.transcription"]
        # It does not name its upstream: whoever keeps the recording may fail before it is called.
        self.transcribe = queue.task(
            name="transcribe_recording", retry=BACKGROUND.retry(system.pace)
        )(self._transcribe)

    async def _transcribe(self, asked: VoiceTranscribe, job: Job) -> Heard:
        """What is said."""
        organization, of_job = _ids(asked, job)
        name = uuid5(of_job, asked.audio_url)
        async with self._pg.transaction("voice") as connection:
            own = await connection.execute(_OWN, [of_job, organization])
            if await own.fetchone() is None:
                raise Discard(f"no job {of_job} in this organisation")
            known = await (await connection.execute(_KNOWN, [name])).fetchone()
        if known is not None:
            return Heard(*known)
        heard = await self._hear(asked.audio_url)
        given = [name, organization, of_job, heard.text, heard.confidence]
        async with self._pg.transaction("voice") as connection:
            await connection.execute(_KEEP, given)
        return heard

    async def _hear(self, address: str) -> Heard:
        sound, kind = await self._fetch(address)
        estimate = speech_estimate(len(sound) / BYTES_PER_SECOND)
        async with metered(self._upstream, estimate=estimate) as spend:
            told = await self._client.transcribe(sound, name=f"audio.{FORMATS.get(kind, 'ogg')}")
            spend(told.items)
        return Heard(told.text.replace("\0", ""), told.confidence or 0.0)

    async def _fetch(self, address: str) -> tuple[bytes, str]:
        """The recording and its media type; redirects could lead anywhere, so none is followed."""
        if _origin(address) != _origin(self._system.settings.recordings_url):
            raise Discard("audioUrl must be an address of CAMPOTECH_RECORDINGS_URL")
        try:
            async with (
                asyncio.timeout(_PATIENCE_S),
                self._system.http.stream("GET", address, follow_redirects=False) as response,
            ):
                return await _read(response)
        except (TimeoutError, httpx.HTTPError) as error:
            raise Unfetched(f"the recording did not come ({type(error).__name__})") from None


async def _read(response: httpx.Response) -> tuple[bytes, str]:
    if response.status_code in _GONE:
        raise Discard(f"the recording is gone (status {response.status_code})")
    if not response.is_success:
        raise Unfetched(f"the recording did not come (status {response.status_code})")
    sound = bytearray()
    async for chunk in response.aiter_bytes():
        sound += chunk
        if len(sound) > MOST_AUDIO:
            raise Discard(f"a recording must have at most {MOST_AUDIO} bytes")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return bytes(sound), kind


def _origin(address: str) -> tuple[str, str, int | None, bytes]:
    url = httpx.URL(address)
    return url.scheme, url.host, url.port, url.userinfo


def _ids(asked: VoiceTranscribe, job: Job) -> tuple[UUID, UUID]:
    try:
        organization, of_job = UUID(asked.organization_id), UUID(asked.job_id)
    except ValueError:
        raise Discard("organizationId and jobId must be UUIDs") from None
    if job.tenant not in (None, str(organization)):
        raise Discard(f"no job {of_job} in this organisation")
    return organization, of_job
