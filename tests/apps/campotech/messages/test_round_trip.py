"""A message is the same after it was sent, in both spellings and through faena's codec."""

from __future__ import annotations

from typing import Any

import pytest
from apps.campotech.messages.base import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.campotech.messages import MESSAGES, SyncOffline
from faena import Faena
from faena.testing import run_inline
from tests._support.search import searching
from tests.apps.campotech.messages.judge import task_of
from tests.apps.campotech.messages.strategies import VALID

_app = Faena("round-trip")
_TASKS = {kind: task_of(_app, name, kind) for name, kind in MESSAGES.items()}


@pytest.mark.parametrize("kind", MESSAGES.values())
@settings(searching(30))
@given(st.data())
def test_a_message_is_the_same_after_json(kind: type[Message], found: st.DataObject) -> None:
    message = found.draw(VALID[kind])
    for by_alias in (True, False):
        raw = message.model_dump_json(by_alias=by_alias)
        back = kind.model_validate_json(raw)
        assert back == message
        assert back.model_dump_json(by_alias=by_alias) == raw


@pytest.mark.parametrize("kind", MESSAGES.values())
@settings(searching(10))
@given(st.data())
async def test_a_message_is_the_same_for_its_handler(
    kind: type[Message], found: st.DataObject
) -> None:
    message = found.draw(VALID[kind])
    assert await run_inline(_TASKS[kind], message) == message
    assert await run_inline(_TASKS[kind], message.model_dump()) == message


@settings(searching(100))
@given(VALID[SyncOffline])
def test_a_batch_that_is_split_has_the_same_operations(batch: Any) -> None:
    parts: list[SyncOffline] = batch.by_entity()
    keys = [part.entity_key for part in parts]
    assert len(set(keys)) == len(keys)
    assert all(0 < len(key) <= 128 and key.isascii() for key in keys)
    assert sorted(map(repr, batch.operations)) == sorted(
        repr(one) for part in parts for one in part.operations
    )
    for part in parts:
        places = [batch.operations.index(one) for one in part.operations]
        assert places == sorted(places)
