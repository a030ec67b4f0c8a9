"""A table that is declared and was never archived has an empty file, under each of its names."""

from __future__ import annotations

from datetime import date
from itertools import product
from pathlib import Path

import pytest

from faena.errors import ArgumentError
from faena.pg import Archive, Postgres

YEAR = {"start": date(2023, 1, 1), "end": date(2023, 12, 31)}


@pytest.mark.parametrize(("declared", "asked"), list(product(["jobs", "public.jobs"], repeat=2)))
async def test_a_table_that_was_never_archived_is_taken(
    pg: Postgres, tmp_path: Path, declared: str, asked: str
) -> None:
    retrievals = pg.retrieval(secrets="a" * 32, to=tmp_path)
    pg.retain(declared, keep="2y", tenant="org", then=Archive(to=tmp_path))
    view = await retrievals.retrieve(asked, tenant="org-1", **YEAR)
    assert (view.state, view.table) == ("waiting", "public.jobs")
    with pytest.raises(ArgumentError, match="must be one that has archives, got 'calls'"):
        await retrievals.retrieve("calls", tenant="org-1", **YEAR)
    with pytest.raises(ArgumentError, match=r"must be one that has archives, got 'shop\.jobs'"):
        await retrievals.retrieve("shop.jobs", tenant="org-1", **YEAR)
