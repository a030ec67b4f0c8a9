"""What WhatsApp says of our messages: how far each has come.

Statuses come twice, late and in any order, so a message only moves forward in `_ORDER`. One that
was delivered was not lost, whatever else is said of it. The status of a message whose answer was
lost brings the id that was never told.
"""

from __future__ import annotations

from typing import Final

from apps.campotech.messaging.sender import Place
from apps.providers.whatsapp import Status
from faena.pg import Connection

_ORDER: Final = ["sent", "failed", "delivered", "read"]
"""What comes before them (sending, unknown) counts as nothing."""
_SAME: Final = {"played": "read"}
_RECORD: Final = """
    UPDATE campotech.whatsapp_messages one
    SET status = %(status)s, wa_message_id = %(wa)s
    FROM campotech.organizations org
    WHERE one.id = %(id)s AND one.created_at = %(at)s AND one.direction = 'outbound'
        AND org.id = one.organization_id AND org.phone_number_id = %(number)s
        AND coalesce(array_position(%(order)s::text[], one.status), 0)
            < array_position(%(order)s::text[], %(status)s::text)
"""


async def record_status(connection: Connection, status: Status) -> bool:
    """Note how far a message has come; False if that was known, or the message is not ours."""
    place = Place.read(status.callback_data)
    name = _SAME.get(status.status, status.status)
    if place is None or name not in _ORDER:
        return False
    given = {
        **place.values(),
        "status": name,
        "wa": status.message_id,
        "number": status.phone_number_id,
        "order": _ORDER,
    }
    return (await connection.execute(_RECORD, given)).rowcount == 1
