"""What devices did without a network: batches, clocks, and one order for each entity."""

from __future__ import annotations

from typing import Any

import pytest
from apps.campotech.messages.sync import MOST_OPERATIONS
from apps.campotech.registry import BATCH_LIMIT
from pydantic.alias_generators import to_snake

from apps.campotech.messages import Operation, SyncOffline
from tests.apps.campotech.messages.judge import OK, judged
from tests.apps.campotech.messages.samples import ID, OTHER_ID, operation, sample

A_UUID = "must be a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e"
AN_INSTANT = "must be an instant with its offset, such as 2025-12-01T10:00:00Z"
TYPES = ("create", "update", "status_change", "photo_upload")
A_TYPE = "input should be 'create', 'update', 'status_change' or 'photo_upload'"
AN_ENTITY = "input should be 'job', 'photo' or 'customer'"
A_BATCH = "operations must be a list of 1 to 100 operations"
FIRST = "operations[0]"
IS_JSON = "must be what JSON carries: texts, finite numbers, at most 64 levels deep"


def one(**changes: Any) -> dict[str, Any]:
    """A batch of one operation."""
    return {"operations": [operation(**changes)]}


TABLE: list[tuple[dict[str, Any], str]] = [
    ({"userId": "x"}, f"userId {A_UUID}"),
    ({"deviceId": "Ana's phone_1"}, OK),
    ({"deviceId": ""}, "deviceId string should have at least 1 character"),
    ({"deviceId": 5}, "deviceId input should be a valid string"),
    ({"operations": [operation()] * 100}, OK),
    ({"operations": []}, A_BATCH),
    ({"operations": [operation()] * 101}, A_BATCH),
    ({"operations": [None] * 101}, A_BATCH),
    *(({"operations": bad}, A_BATCH) for bad in (None, "a", {}, 5, {1})),
    ({"operations": ["a"]}, f"{FIRST} input should be a valid dictionary or instance of Operation"),
    *((one(type=kind), OK) for kind in TYPES),
    *((one(type=bad), f"{FIRST}.type {A_TYPE}") for bad in ("delete", "", None)),
    *((one(entityType=kind), OK) for kind in ("job", "photo", "customer")),
    *((one(entityType=bad), f"{FIRST}.entityType {AN_ENTITY}") for bad in ("invoice", "", None)),
    (one(localId=""), f"{FIRST}.localId string should have at least 1 character"),
    (one(localId=7), f"{FIRST}.localId input should be a valid string"),
    (one(serverId=...), OK),
    (one(serverId="x"), f"{FIRST}.serverId {A_UUID}"),
    (one(data={}), OK),
    (one(data=None), f"{FIRST}.data input should be a valid dictionary"),
    (one(data={"a": float("nan")}), f"{FIRST}.data {IS_JSON}"),
    (one(clientTimestamp=5), f"{FIRST}.clientTimestamp {AN_INSTANT}"),
    (one(clientTimestamp="2025-12-01T10:00:00"),
     f"{FIRST}.clientTimestamp input should have timezone info"),
    *((one(vectorClock=good), OK) for good in (..., {}, {"a": 0}, {"a": 10**18, "": 1})),
    (one(vectorClock={"a": -1}),
     f"{FIRST}.vectorClock.a input should be greater than or equal to 0"),
    *((one(vectorClock={"a": bad}), f"{FIRST}.vectorClock.a input should be a valid integer")
      for bad in (1.5, "1", True, None)),
    (one(vectorClock=[1]), f"{FIRST}.vectorClock input should be a valid dictionary"),
    *((one(**{name: ...}), f"{FIRST}.{name} field required")
      for name in ("type", "localId", "entityType", "data", "clientTimestamp")),
    (one(more=1), f"{FIRST}.more extra inputs are not permitted"),
    ({"operations": [operation(), operation(type="?"), operation(localId="")]},
     f"operations[1].type {A_TYPE}; operations[2].localId string should have at least 1 character"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), TABLE)
async def test_a_batch_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("sync.offline", sample("sync.offline", **changes)) == says


def test_a_batch_is_as_large_as_the_registry_says() -> None:
    assert MOST_OPERATIONS == BATCH_LIMIT


def batch(*operations: dict[str, Any], device: str = "device-1") -> SyncOffline:
    return SyncOffline.model_validate(
        sample("sync.offline", deviceId=device, operations=list(operations))
    )


def local(name: str, **changes: Any) -> dict[str, Any]:
    return operation(localId=name, serverId=..., **changes)


def local_ids(message: SyncOffline) -> list[str]:
    return [change.local_id for change in message.operations]


def test_an_entity_of_the_server_is_the_same_from_every_device() -> None:
    here, there = batch(operation(localId="1")), batch(operation(localId="2"), device="device-2")
    assert here.entity_key == there.entity_key == f"job:{ID}"
    assert batch(operation(serverId=OTHER_ID)).entity_key != here.entity_key
    assert batch(operation(entityType="customer")).entity_key != here.entity_key


def test_an_entity_that_only_its_device_knows_is_that_devices_own() -> None:
    keys = {
        batch(local(name), device=device).entity_key
        for device, name in [("a", "1"), ("b", "1"), ("a", "2"), ("a/1", "2"), ("a", "1/2")]
    }
    assert len(keys) == 5
    assert batch(local("1")).entity_key == batch(local("1", type="create")).entity_key


def test_a_batch_is_split_by_entity_and_keeps_its_order() -> None:
    whole = batch(local("b"), local("a"), local("b"), local("c"), local("a"))
    parts = whole.by_entity()
    assert [local_ids(part) for part in parts] == [["b", "b"], ["a", "a"], ["c"]]
    assert len({part.entity_key for part in parts}) == 3
    assert all(part.model_copy(update={"operations": ()}) == whole.model_copy(
        update={"operations": ()}) for part in parts)  # fmt: skip


def test_an_entity_that_got_its_id_in_the_middle_of_a_batch_is_one() -> None:
    whole = batch(local("a", type="create"), operation(localId="a"), local("a"))
    assert whole.entity_key == f"job:{ID}"
    assert whole.by_entity() == [whole]


def test_a_batch_of_several_entities_has_no_one_place_in_an_order() -> None:
    with pytest.raises(ValueError, match="must be about one entity, got 2: split the message"):
        _ = batch(local("a"), local("b")).entity_key


def test_operations_are_read_in_both_spellings() -> None:
    own = {"data": {"a_b": 1, "aB": 2}, "vectorClock": {"device_1": 1}}
    camel = operation(**own)
    snake = {to_snake(name): value for name, value in camel.items()}
    found = Operation.model_validate(snake)
    assert found == Operation.model_validate(camel)
    assert found.data == {"a_b": 1, "aB": 2}
    assert found.vector_clock == {"device_1": 1}
