"""Job ids that increase, and idempotency keys that can be read back."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.errors import ConfigError
from faena.values.ids import (
    ID_ALPHABET,
    IdempotencyKey,
    IdFactory,
    WebhookKey,
    check_key,
    made_at_us,
    parse_key,
)
from faena.values.names import check_label


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def ticking(*instants: int) -> Callable[[], int]:
    ticks: Iterator[int] = iter(instants)
    return lambda: next(ticks)


def test_an_id_has_twenty_characters_of_an_ordered_alphabet() -> None:
    made = IdFactory(wall_ms, os.urandom).new_id()
    assert len(made) == 20
    assert set(made) <= set(ID_ALPHABET)
    assert list(ID_ALPHABET) == sorted(set(ID_ALPHABET))
    assert len(ID_ALPHABET) == 64
    assert check_label("id", made) == made


def test_an_id_begins_with_a_digit_so_that_a_command_line_takes_it_for_an_argument() -> None:
    assert IdFactory(wall_ms, os.urandom).new_id()[0] == "0"


def test_ids_of_later_milliseconds_sort_later() -> None:
    factory = IdFactory(ticking(1, 2, 2**40, 2**48 - 1), os.urandom)
    ids = [factory.new_id() for _ in range(4)]
    assert ids == sorted(ids)
    assert [i.encode() for i in ids] == sorted(i.encode() for i in ids)


def test_time_takes_the_first_eight_characters() -> None:
    factory = IdFactory(ticking(0, 63, 64), bytes)
    assert [factory.new_id()[:8] for _ in range(3)] == ["00000000", "0000000~", "00000010"]


@given(
    st.lists(
        st.tuples(st.integers(0, 2**41), st.integers(0, 9000), st.binary(min_size=9, max_size=9)),
        min_size=1,
        max_size=8,
    )
)
def test_ids_increase_whatever_clock_and_chance_do(
    calls: list[tuple[int, int, bytes]],
) -> None:
    clock = ticking(*(now for now, _, _ in calls))
    chance = iter([bytes_ for _, _, bytes_ in calls])
    factory = IdFactory(clock, lambda _size: next(chance))
    ids: list[str] = []
    for _, count, _ in calls:
        ids += factory.new_ids(count)
    assert len(ids) == sum(count for _, count, _ in calls)
    assert all(one < other for one, other in pairwise(ids))
    assert all(len(one) == 20 for one in ids)


def test_a_batch_at_the_end_of_a_millisecond_runs_over_into_the_next() -> None:
    factory = IdFactory(lambda: 5, lambda size: b"\xff" * size)
    ids = factory.new_ids(5000)
    assert ids == sorted(set(ids))
    assert ids[0].startswith("00000005")
    assert ids[-1].startswith("00000006")


def test_a_batch_is_the_same_ids_as_single_steps_would_give() -> None:
    whole = IdFactory(lambda: 7, lambda size: bytes(size - 2) + b"\x0f\xf0").new_ids(40)
    assert whole[0][-2:] == "~l"
    assert whole[15][-2:] == "~~"
    assert whole[16][-4:] == "0100"


def test_threads_that_share_a_factory_never_get_the_same_id() -> None:
    factory = IdFactory(lambda: 1, os.urandom)
    with ThreadPoolExecutor(4) as pool:
        batches = list(pool.map(factory.new_ids, [500] * 40))
    ids = [one for batch in batches for one in batch]
    assert len(set(ids)) == 20_000


def test_a_forked_copy_does_not_repeat_the_ids_of_its_parent() -> None:
    parent, child = (IdFactory(lambda: 1, os.urandom) for _ in range(2))
    parent.new_id()
    child._last = parent._last
    assert not set(parent.new_ids(1000)) & set(child.new_ids(1000))


def test_two_processes_that_start_in_the_same_millisecond_differ() -> None:
    seeded = [IdFactory(lambda: 1, random.Random(seed).randbytes) for seed in (1, 2)]
    assert seeded[0].new_id() != seeded[1].new_id()


@pytest.mark.parametrize("count", [-1, 1_000_001, "5", None])
def test_a_batch_of_no_sensible_size_is_refused(count: Any) -> None:
    with pytest.raises(ConfigError, match="count must be a whole number from 0"):
        IdFactory(wall_ms, os.urandom).new_ids(count)


def test_an_ordinary_key_looks_as_people_expect() -> None:
    key = IdempotencyKey("org123", "invoice", "inv456", "cae", 1701234567)
    assert str(key) == "idem_org123_invoice_inv456_cae_1701234567"
    assert str(IdempotencyKey("org123", "pdf", "inv456", "v2")) == "idem_org123_pdf_inv456_v2"
    assert str(WebhookKey("mp", "98765_payment")) == "webhook_mp_98765_payment"


def test_parts_may_be_whole_numbers_and_uuids_and_are_kept_as_texts() -> None:
    order = UUID("12345678123456781234567812345678")
    key = IdempotencyKey("org-1", "order", 9, "charge")
    assert key == IdempotencyKey("org-1", "order", "9", "charge") == IdempotencyKey.parse(str(key))
    assert IdempotencyKey(7, "order", order, "charge").id == str(order)
    assert str(WebhookKey("mp", 98765)) == "webhook_mp_98765"
    assert WebhookKey("mp", order).external_id == str(order)
    for wrong in (True, 1.5, None, b"9"):
        with pytest.raises(ConfigError, match="idempotency id must be 1 to 128 printable"):
            IdempotencyKey("org-1", "order", wrong, "charge")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("idem_org_invoice_9_cae_5", IdempotencyKey("org", "invoice", "9", "cae", 5)),
        ("idem_org_wa_c1_appt%5Freminder_7", IdempotencyKey("org", "wa", "c1", "appt_reminder", 7)),
        ("idem_o_sync_dev_af%2530", IdempotencyKey("o", "sync", "dev", "af%30")),
        ("webhook_mp_1_2_3", WebhookKey("mp", "1_2_3")),
        ("webhook_m%5Fp_1%", WebhookKey("m_p", "1%")),
    ],
)
def test_a_key_is_read_back_into_its_parts(text: str, key: Any) -> None:
    assert parse_key(text) == key
    assert str(key) == text


@pytest.mark.parametrize(
    "text",
    ["", "idem", "idem_", "idem_a_b_c", "idem_a_b_c_d_e", "idem_a_b_c_d_007", "idem_a_b_c_d_٣",
     "idem_a_b_c_d_5_6", "idem__b_c_d_5", "idem_a%41_b_c_d_5", "webhook_mp", "webhook__1",
     "webhook_mp_", "other_a_b_c_d_5", "idem_a_b_c_d_" + "9" * 16, "webhook_mp_a b",
     "idem_a_b_c_d_²", "idem_a_b_c_d_" + "9" * 5000],
)  # fmt: skip
def test_a_text_no_builder_writes_is_not_read_as_a_key(text: str) -> None:
    assert parse_key(text) is None


part = st.text(
    st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=9
)


@given(part, part, part, part, st.none() | st.integers(0, 10**15))
def test_every_built_key_is_read_back_exactly(
    tenant: str, entity: str, name: str, action: str, stamp: int | None
) -> None:
    key = IdempotencyKey(tenant, entity, name, action, stamp)
    assert parse_key(str(key)) == key


@given(part, part)
def test_every_webhook_key_is_read_back_exactly(source: str, external_id: str) -> None:
    key = WebhookKey(source, external_id)
    assert parse_key(str(key)) == key


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IdempotencyKey("", "e", "i", "a", 1), "idempotency tenant must be 1 to 128"),
        (lambda: IdempotencyKey("t", "e e", "i", "a", 1), "idempotency entity must be"),
        (lambda: IdempotencyKey("t", "e", "i", "a", -1), "idempotency stamp must be a whole"),
        (lambda: IdempotencyKey("t" * 99, "e", "i" * 99, "a"), "idempotency key must be 1 to 128"),
        (lambda: WebhookKey("", "1"), "webhook source must be"),
        (lambda: WebhookKey("mp", ""), "webhook external_id must be"),
        (lambda: WebhookKey("_" * 60, "1"), "idempotency key must be 1 to 128"),
    ],
)
def test_bad_parts_of_a_key_are_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_two_uuids_fit_into_a_key() -> None:
    uuid = "123e4567-e89b-12d3-a456-426614174000"
    key = str(IdempotencyKey(uuid, "invoice", uuid, "cae", 1701234567))
    assert check_key("idempotency_key", key) == key


def test_a_key_of_somebodys_own_needs_sixteen_characters() -> None:
    assert check_key("idempotency_key", "x" * 16) == "x" * 16
    assert check_key("idempotency_key", "webhook_mp_1") == "webhook_mp_1"
    with pytest.raises(ConfigError, match="a WebhookKey or at least 16 characters"):
        check_key("idempotency_key", "x" * 15)
    with pytest.raises(ConfigError, match="idempotency_key must be 1 to 128 printable"):
        check_key("idempotency_key", "x" * 129)


def test_an_id_tells_when_it_was_made() -> None:
    ids = IdFactory(lambda: 1_700_000_000_123, lambda number: b"\xff" * number)
    assert made_at_us(ids.new_id()) == 1_700_000_000_123_000
    assert made_at_us("nightly@20261115T020000Z") is None
    assert made_at_us("invoice-2026-00017-a") is None
