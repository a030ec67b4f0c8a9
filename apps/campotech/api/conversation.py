"""Conversations that wait for a person, until one has answered."""

from __future__ import annotations

from typing import Final, Literal
from uuid import UUID

from fastapi import APIRouter, Request

from apps.campotech.api.answer import Answer
from apps.campotech.api.caller import Caller, system_of
from apps.campotech.api.problem import Problem, answers
from apps.campotech.messaging.escalation import take_care

router: Final = APIRouter(
    prefix="/api/v1", tags=["conversations"], responses=answers(401, 422, 503)
)
_OWN: Final = "SELECT 1 FROM campotech.conversations WHERE id = %s AND organization_id = %s"


class Conversation(Answer):
    """A conversation that no longer waits."""

    id: UUID
    status: Literal["answered", "known"]
    """known: nobody was waited for."""


@router.post("/conversations/{conversation}/answered", responses=answers(404))
async def end_waiting(request: Request, caller: Caller, conversation: UUID) -> Conversation:
    """Somebody has taken care of it: the model answers the customer's next message."""
    async with system_of(request).pg.transaction("conversation") as connection:
        own = await connection.execute(_OWN, [conversation, caller.id])
        if await own.fetchone() is None:
            raise Problem(404, "no such conversation")
        is_new = await take_care(connection, caller.id, conversation)
    return Conversation(id=conversation, status="answered" if is_new else "known")
