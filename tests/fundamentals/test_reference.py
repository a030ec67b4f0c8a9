"""The reference pages say what the code says."""

from __future__ import annotations

import ast

import pytest

import faena
from faena import UpstreamUnavailable
from tests._support.reference import OPTIONS, PAGES, WRITTEN, Part, fields_of, node_of


@pytest.mark.parametrize("page", sorted(WRITTEN))
def test_a_page_of_the_reference_is_what_the_code_says(page: str) -> None:
    assert (PAGES / page).read_text("utf-8") == WRITTEN[page](), "run ./dev reference"


def test_every_public_exception_is_on_the_page_of_errors() -> None:
    public = [getattr(faena, name) for name in faena.__all__]
    kinds = [one for one in public if isinstance(one, type) and issubclass(one, Exception)]
    assert UpstreamUnavailable in kinds
    page = (PAGES / "errors.md").read_text("utf-8")
    assert [one.__name__ for one in kinds if f"\n| `{one.__name__}` | " not in page] == []


@pytest.mark.parametrize("part", OPTIONS, ids=lambda part: part.title)
def test_every_option_is_explained_where_it_is_declared(part: Part) -> None:
    node = node_of(part.path)
    assert ast.get_docstring(node)
    if isinstance(node, ast.ClassDef):
        assert [one.name for one in fields_of(node) if not one.meaning] == []
