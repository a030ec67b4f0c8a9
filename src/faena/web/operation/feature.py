"""What operators say of features and levels."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from faena.resilience.feature_views import FeatureView, LevelView
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.audit import Record
from faena.web.operation.again import again
from faena.web.operation.operation import Asked, Done, Operation, Undo


class Trouble(msgspec.Struct, forbid_unknown_fields=True):
    """How a feature is, by hand."""

    state: Literal["degraded", "offline"]
    message: str | None = None
    """What to tell users; none: the feature's own words."""
    lasting: str | None = None
    """A duration such as 1h; none: until it is cleared."""


class On(msgspec.Struct, forbid_unknown_fields=True):
    """How long a level is on, and what users are told."""

    message: str | None = None
    lasting: str | None = None


async def _feature(asked: Asked) -> tuple[FeatureView, dict[str, Any] | None]:
    """The feature, and what an operator says of it."""
    view, name = await asked.app.features(), asked.where["feature"]
    if name not in view.features:
        raise not_found(f"feature {name}")
    found = view.features[name]
    return found, _by_hand(found, view.at)


def _by_hand(view: FeatureView, at: int) -> dict[str, Any] | None:
    one = next((one for one in view.sources if one.source == "operator"), None)
    if one is None:
        return None
    said = {"state": one.state, "message": one.message, "by": one.by}
    return said | {"until": one.until, "at": at}


async def _set(asked: Asked) -> Done:
    view, before = await _feature(asked)
    given, control = asked.given, asked.app.features.control(view.name)
    await control.set(given.state, message=given.message, lasting=given.lasting, by=asked.by)
    after, by_hand = await _feature(asked)
    return Done({"state": after.state}, before, by_hand)


async def _clear(asked: Asked) -> Done:
    view, before = await _feature(asked)
    has_ended = await asked.app.features.control(view.name).clear(by=asked.by)
    after, by_hand = await _feature(asked)
    return Done({"cleared": has_ended, "state": after.state}, before, by_hand)


async def _forget(asked: Asked) -> Done:
    view, _ = await _feature(asked)
    await asked.app.features.forget(view.name, by=asked.by)
    return Done({"forgotten": True}, view.state, "forgotten")


async def _level(asked: Asked) -> tuple[LevelView, dict[str, Any]]:
    view, name = await asked.app.features(), asked.where["level"]
    if name not in view.levels:
        raise not_found(f"level {name}")
    one = view.levels[name]
    said = {"is_on": one.is_on, "message": one.message, "by": one.by}
    return one, said | {"until": one.until, "at": view.at}


async def _on(asked: Asked) -> Done:
    level, before = await _level(asked)
    given, control = asked.given, asked.app.features.level_control(level.name)
    await control.on(message=given.message, lasting=given.lasting, by=asked.by)
    return Done({"is_on": True}, before, (await _level(asked))[1])


async def _off(asked: Asked) -> Done:
    level, before = await _level(asked)
    was_on = await asked.app.features.level_control(level.name).off(by=asked.by)
    return Done({"was_on": was_on}, before, (await _level(asked))[1])


async def _forget_level(asked: Asked) -> Done:
    level, before = await _level(asked)
    await asked.app.features.forget_level(level.name, by=asked.by)
    return Done({"forgotten": True}, before, "forgotten")


def _undo_set(record: Record) -> Undo | None:
    before = record.before
    if before is None:
        return Undo("features.clear", record.where)
    return _as_before(record)


def _as_before(record: Record) -> Undo | None:
    before = record.before
    if not isinstance(before, dict):
        return None
    said = {"state": before["state"], "message": before["message"] or ""}
    return again(before, record.where, "features.set", **said)


def _undo_switch(record: Record) -> Undo | None:
    before = record.before
    if not isinstance(before, dict):
        return None
    if not before["is_on"]:
        return Undo("levels.off", record.where)
    return again(before, record.where, "levels.on", message=before["message"] or "")


def _undo_off(record: Record) -> Undo | None:
    before = record.before
    return _undo_switch(record) if isinstance(before, dict) and before["is_on"] else None


OPERATIONS: Final = (
    Operation(
        name="features.set",
        path="/features/{feature}/set",
        needs=Permission.OPERATE,
        text="Say by hand that a feature is degraded or offline; the worst source counts.",
        arguments=Trouble,
        do=_set,
        told="{feature} is {state} by hand",
        undo=_undo_set,
    ),
    Operation(
        name="features.clear",
        path="/features/{feature}/clear",
        needs=Permission.OPERATE,
        text="End what was set by hand; what other sources say stays.",
        do=_clear,
        told="What was set by hand of {feature} has ended",
        undo=_as_before,
    ),
    Operation(
        name="features.forget",
        path="/features/{feature}/forget",
        needs=Permission.ADMINISTER,
        text="Remove a feature that no program declares any more.",
        do=_forget,
        told="{feature} is forgotten",
    ),
    Operation(
        name="levels.on",
        path="/levels/{level}/on",
        needs=Permission.OPERATE,
        text="Switch a level on: a saved set of states of features.",
        arguments=On,
        do=_on,
        told="{level} is on",
        undo=_undo_switch,
    ),
    Operation(
        name="levels.off",
        path="/levels/{level}/off",
        needs=Permission.OPERATE,
        text="Switch a level off.",
        do=_off,
        told="{level} is off",
        undo=_undo_off,
    ),
    Operation(
        name="levels.forget",
        path="/levels/{level}/forget",
        needs=Permission.ADMINISTER,
        text="Remove a level that no program declares any more.",
        do=_forget_level,
        told="{level} is forgotten",
    ),
)
