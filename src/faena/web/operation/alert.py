"""What can be done about alerts: silences, and trials of channels."""

from __future__ import annotations

from typing import Final

import msgspec

from faena.telemetry.alerts.failure import Undelivered
from faena.telemetry.alerts.view import SilenceView
from faena.web.access.role import Permission
from faena.web.answer import Refusal, not_found
from faena.web.audit import Record
from faena.web.operation.again import again
from faena.web.operation.operation import Asked, Done, Operation, Undo


class Silence(msgspec.Struct, forbid_unknown_fields=True):
    """Which alerts nobody is told of, why, and for how long."""

    reason: str
    lasting: str
    rule: str | None = None
    """None: any."""
    subject: str | None = None
    """A queue, an upstream or a node; none: any."""


async def _silence(asked: Asked) -> Done:
    given = asked.given
    made = await asked.app.silence(
        given.rule, given.subject, lasting=given.lasting, reason=given.reason, by=asked.by
    )
    return Done(made.to_dict(), None, made.to_dict())


async def _unsilence(asked: Asked) -> Done:
    name, seen = asked.where["silence"], await asked.app.alerts(history=0)
    found = next((one for one in seen.silences if one.id == name), None)
    if found is None:
        raise not_found(f"silence {name}: it may have ended")
    await asked.app.unsilence(name, by=asked.by)
    return Done({"ended": True}, _told(found, seen.at), None)


def _told(silence: SilenceView, at: int) -> dict[str, object]:
    return {**silence.to_dict(), "at": at}


async def _test(asked: Asked) -> Done:
    name, options = asked.where["channel"], asked.app.alert_options
    if options is None or name not in {one.name for one in options.channels}:
        raise not_found(f"channel {name}")
    try:
        await asked.app.test_channel(name)
    except Undelivered as error:
        raise Refusal(502, "not_accepted", f"channel {name} has not accepted it: {error}") from None
    return Done({"accepted": True}, None, "accepted")


def _undo_silence(record: Record) -> Undo | None:
    made = record.after
    return Undo("alerts.unsilence", {"silence": made["id"]}) if isinstance(made, dict) else None


def _undo_unsilence(record: Record) -> Undo | None:
    before = record.before
    if not isinstance(before, dict):
        return None
    named = {name: before[name] for name in ("rule", "subject") if before[name]}
    return again(before, {}, "alerts.silence", reason=before["reason"], **named)


OPERATIONS: Final = (
    Operation(
        name="alerts.silence",
        path="/alerts/silences",
        needs=Permission.OPERATE,
        text="Send no notices of some alerts for some time; what still fires then is told then.",
        arguments=Silence,
        do=_silence,
        told="Nobody is told of it for {lasting}: {reason}",
        undo=_undo_silence,
    ),
    Operation(
        name="alerts.unsilence",
        path="/alerts/silences/{silence}/end",
        needs=Permission.OPERATE,
        text="End a silence; what still fires is told with the next evaluation.",
        do=_unsilence,
        told="The silence has ended",
        undo=_undo_unsilence,
    ),
    Operation(
        name="alerts.test",
        path="/alerts/channels/{channel}/test",
        needs=Permission.OPERATE,
        text="Send a trial notice through a channel, from the dashboard's process.",
        do=_test,
        told="{channel} has accepted a trial notice",
    ),
)
