"""Patterns of payloads are checked in SQL, as far as PostgreSQL knows them."""

from __future__ import annotations

import psycopg
import pytest


@pytest.mark.parametrize(
    ("pattern", "value", "is_refused"),
    [
        ("^[a-z]{1,9}$", "abc", False),
        ("^[a-z]{1,9}$", "ABC", True),
        ("^[a-z]{1,512}$", "abc", False),
        ("^[a-z]{1,512}$", "ABC", False),
        ("(?P<name>a)", "b", False),
        ("[", "b", False),
    ],
)
def test_a_pattern_that_postgresql_does_not_know_is_left_to_workers(
    database: str, pattern: str, value: str, is_refused: bool
) -> None:
    with psycopg.connect(database) as connection:
        query = "SELECT faena.string_errors(jsonb_build_object('pattern', %s::text), %s, 'name')"
        found = connection.execute(query, [pattern, value]).fetchall()
    assert found == ([(f"name must match {pattern}",)] if is_refused else [])
