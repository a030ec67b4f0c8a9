"""Changes that technicians made without a network, in the order in which they made them.

The changes of one entity must be applied one after the other, also those of two devices. So a job
is about one entity and has its key: a batch is split (`by_entity`) before it is enqueued. Changes
that were made at the same time on two devices are told apart by their vector clocks.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from apps.campotech.messages.base import Message, Schema
from apps.campotech.messages.fields import Clock, Data, Id, Instant, Name

MOST_OPERATIONS: Final = 100


class Operation(Schema):
    """One change of one entity."""

    type: Literal["create", "update", "status_change", "photo_upload"]
    local_id: Name
    """The entity's on the device."""
    server_id: Id | None = None
    """The entity's on the server; None while the device does not know it."""
    entity_type: Literal["job", "photo", "customer"]
    data: Annotated[Data, Field(repr=False)]
    client_timestamp: Instant
    vector_clock: Clock | None = None


def _counted(value: object) -> object:
    """Before each of them is looked at: there may be very many."""
    if isinstance(value, list | tuple) and 1 <= len(value) <= MOST_OPERATIONS:
        return value
    raise PydanticCustomError(
        "batch", "must be a list of 1 to {most} operations", {"most": MOST_OPERATIONS}
    )


class SyncOffline(Message):
    """Changes of one device."""

    user_id: Id
    device_id: Name
    operations: Annotated[
        tuple[Operation, ...],
        BeforeValidator(_counted),
        Field(repr=False, json_schema_extra={"minItems": 1, "maxItems": MOST_OPERATIONS}),
    ]

    @property
    def entity_key(self) -> str:
        """The key by which jobs about its entity wait for each other, within the organisation."""
        keys = self._grouped()
        if len(keys) != 1:
            raise ValueError(
                f"a job must be about one entity, got {len(keys)}: split the message by entity"
            )
        return next(iter(keys))

    def by_entity(self) -> list[SyncOffline]:
        """A message for each entity, in the order of their first changes."""
        return [self.model_copy(update={"operations": own}) for own in self._grouped().values()]

    def _grouped(self) -> dict[str, tuple[Operation, ...]]:
        known = {
            (one.entity_type, one.local_id): one.server_id
            for one in self.operations
            if one.server_id is not None
        }
        groups: dict[str, list[Operation]] = {}
        for one in self.operations:
            server_id = one.server_id or known.get((one.entity_type, one.local_id))
            groups.setdefault(self._key(one, server_id), []).append(one)
        return {key: tuple(own) for key, own in groups.items()}

    def _key(self, one: Operation, server_id: UUID | None) -> str:
        if server_id is not None:
            return f"{one.entity_type}:{server_id}"
        # Two devices may give the same local id, and neither needs to be a valid key.
        place = json.dumps([self.device_id, one.local_id]).encode()
        return f"{one.entity_type}:local:{hashlib.blake2b(place, digest_size=16).hexdigest()}"
