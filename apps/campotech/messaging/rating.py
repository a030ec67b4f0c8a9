"""What customers answer when they are asked how a job was: one figure, from 1 to 5.

It counts for the job that they were asked about last, within a week. Any other text is a message.
"""

from __future__ import annotations

import re
from typing import Final

from apps.campotech.messaging.conversation import Received
from faena.pg import Connection

THANKS: Final = "¡Gracias por tu calificación!"
_FIGURE: Final = re.compile(r"[1-5]")
_RATE: Final = """
    UPDATE campotech.ratings SET stars = %(stars)s
    WHERE stars IS NULL AND id = (
        SELECT asked.id FROM campotech.ratings asked
        JOIN campotech.jobs job
            ON job.id = asked.job_id AND job.organization_id = asked.organization_id
        WHERE asked.organization_id = %(organization)s AND job.customer_id = %(customer)s
            AND asked.stars IS NULL AND asked.asked_at > now() - interval '7 days'
        ORDER BY asked.asked_at DESC, asked.id LIMIT 1)
"""


async def take_rating(connection: Connection, one: Received) -> bool:
    """Whether a message is the answer to such a question; then it is noted."""
    said = (one.content or "").strip()
    if one.customer_id is None or not _FIGURE.fullmatch(said):
        return False
    given = {
        "stars": int(said),
        "organization": one.organization_id,
        "customer": one.customer_id,
    }
    return (await connection.execute(_RATE, given)).rowcount == 1
