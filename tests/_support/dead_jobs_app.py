"""An app with dead jobs by the thousand, for redrives that the command line drives.

The broker is in FAENA_URL.
"""

from __future__ import annotations

from faena import Faena, Retain, Retry
from faena.engine import Engine
from faena.engine.scripts import Settlement, Turn
from faena.options import EnqueueOptions
from faena.outcomes import Buried, DeathNote, ErrorRecord
from faena.producing.sealing import seal_job

app = Faena("dead_jobs")
mail = app.queue("mail", retry=Retry.never(), retain=Retain(dead_count=None), lease="5s")

_AT_ONCE = 500
_ERROR = ErrorRecord(name="ReadTimeout", message="no answer", code="ETIMEDOUT", attempt=1)
_NEEDLE = DeathNote("send", "acme", "ReadTimeout", "ETIMEDOUT", "0123456789ab", "no answer")
_NOTE = DeathNote("send", "", "ReadTimeout", "ETIMEDOUT", "0123456789ab", "no answer")


@mail.task
async def send(number: int) -> int:
    return number


def _spec(job: str, number: int) -> bytes:
    draft = send.draft(number, tenant=None if number else "acme")
    return seal_job(job, send.spec(draft), EnqueueOptions(), 10).spec


async def fill(engine: Engine, number: int) -> list[str]:
    """So many dead jobs, the first one of tenant acme; their ids, oldest first."""
    ids: list[str] = []
    for start in range(0, number, _AT_ONCE):
        fresh = app.new_ids(min(_AT_ONCE, number - start))
        jobs = [(job, _spec(job, start + i)) for i, job in enumerate(fresh)]
        await engine.enqueue("mail", "undertaker", f"call{start:09d}", jobs)
        claimed = await engine.exchange("mail", "w", "w", Turn(f"call{start:09d}a", _AT_ONCE))
        needle = ids[0] if ids else fresh[0]
        endings = [
            Settlement(
                one.id,
                one.lease,
                Buried(_ERROR, note=_NEEDLE if one.id == needle else _NOTE),
            )
            for one in claimed.claimed
        ]
        await engine.exchange("mail", "w", "w", Turn(f"call{start:09d}b", 0, endings))
        ids += fresh
    return ids
