"""Every queue has a message, and faena's errors say what is wrong with one."""

from __future__ import annotations

import pytest
from apps.campotech.keys import key_of
from apps.campotech.registry import PAYLOAD_LIMIT, ROWS

from apps.campotech.messages import MESSAGES, AfipInvoice, Message, SyncOffline
from faena import Faena
from faena.errors import PayloadError
from faena.testing import harness
from tests.apps.campotech.messages.judge import task_of
from tests.apps.campotech.messages.samples import QUEUES, operation, sample


def test_every_queue_of_the_registry_has_one_message() -> None:
    assert set(MESSAGES) == {row.name for row in ROWS} == set(QUEUES)
    assert len(set(MESSAGES.values())) == len(MESSAGES)
    assert all(issubclass(kind, Message) for kind in MESSAGES.values())


def test_the_catalogue_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        MESSAGES["cleanup"] = AfipInvoice  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_message_reaches_its_handler_and_its_key_is_the_jobs_id(queue: str) -> None:
    app = Faena("campotech")
    task = task_of(app, queue, MESSAGES[queue])
    message = MESSAGES[queue].model_validate(sample(queue))
    async with harness(app) as h:
        receipt = await task.enqueue(message, id=key_of(message), tenant=message.org_id)
        again = await task.enqueue(sample(queue), id=str(key_of(message)), tenant=message.org_id)
        (await h.drain()).check()
        assert await receipt.handle.result(timeout="10s") == message
    assert receipt.id == str(key_of(message))
    assert (receipt.status, again.status) == ("created", "duplicate")


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_bad_message_is_refused_before_anything_is_written(queue: str) -> None:
    app = Faena("campotech")
    task = task_of(app, queue, MESSAGES[queue])
    async with harness(app) as h:
        with pytest.raises(PayloadError, match=r"got 2 bad fields: orgId .*; priority "):
            await task.enqueue(sample(queue, orgId="s3cret", priority=0))
        await h.assert_not_enqueued(task)


async def test_an_error_names_every_field_and_what_would_be_valid() -> None:
    app = Faena("campotech")
    task = task_of(app, "afip.invoice", AfipInvoice)
    bad = sample("afip.invoice", orgId="org-1", invoiceType="D", puntoVenta=0, total=100.005)
    async with harness(app):
        with pytest.raises(PayloadError) as caught:
            await task.enqueue(bad)
    assert str(caught.value) == (
        "payload must be AfipInvoice, got 4 bad fields: "
        "orgId must be a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e; "
        "invoiceType input should be 'A', 'B' or 'C'; "
        "puntoVenta input should be greater than or equal to 1; "
        "total must have at most two decimals"
    )


async def test_an_error_names_the_operation_of_a_batch() -> None:
    app = Faena("campotech")
    task = task_of(app, "sync.offline", SyncOffline)
    bad = [operation(), operation(vectorClock={"device-1": -1})]
    async with harness(app):
        with pytest.raises(PayloadError) as caught:
            await task.enqueue(sample("sync.offline", operations=bad))
    (problem,) = caught.value.fields
    assert problem == (
        "operations[1].vectorClock['device-1']",
        "input should be greater than or equal to 0",
    )


async def test_how_large_a_message_may_be_is_the_business_of_its_queue() -> None:
    app = Faena("campotech")
    task = task_of(app, "analytics", MESSAGES["analytics"])
    large = sample("analytics", eventData={"a": "x" * PAYLOAD_LIMIT})
    message = MESSAGES["analytics"].model_validate(large)
    async with harness(app):
        with pytest.raises(PayloadError, match=f"must be at most {PAYLOAD_LIMIT} bytes"):
            await task.enqueue(message)
