"""A real browser walks every page in three languages, both themes and three widths."""

from __future__ import annotations

import os
from itertools import product

import pytest

from faena.web.access.access import Access
from faena.web.application import dashboard
from faena.web.words import LANGUAGES
from tests._support.chromium import chromium
from tests._support.valkey import Server
from tests.web.browser.visitor import WIDTHS, Visitor, chosen, kind_of, visiting
from tests.web.browser.world import world_at

_MOST = 60
"""More kinds of pages than there are."""


@pytest.mark.parametrize(("language", "theme"), [*product(LANGUAGES, ("light", "dark"))])
async def test_no_page_complains(server: Server, language: str, theme: str) -> None:
    async with chromium() as browser, world_at(server.url, "walk") as world:
        web = dashboard(world.app, access=Access(link=True), environment="test")
        locale = {"en": "en-GB", "es": "es-AR", "pt": "pt-BR"}[language]
        async with visiting(browser, web, locale=locale, color_scheme=theme) as visitor:
            seen = await _walk(visitor, f"{language}-{theme}")
    assert not visitor.complaints
    assert len(seen) > 5


async def _walk(visitor: Visitor, label: str) -> set[str]:
    """Every kind of page that links lead to, once."""
    seen: set[str] = set()
    found, waiting = list[str](), ["/"]
    while waiting:
        path = waiting.pop(0)
        kind = kind_of(path)
        if kind in seen:
            continue
        seen.add(kind)
        assert len(seen) < _MOST, f"pages lead on for ever: {sorted(seen)}"
        answer = await visitor.open(path)
        if answer is None or answer.status != 200:
            found.append(f"{path} answers {answer and answer.status}")
            continue
        found += await _look(visitor, path, label)
        waiting += await visitor.links()
    assert not found, "\n".join(found)
    return seen


async def _look(visitor: Visitor, path: str, label: str) -> list[str]:
    """What is wrong with a page at each width."""
    wrong = [f"{path}: {one}" for one in await visitor.barriers()]
    for width in WIDTHS:
        await visitor.resize(width)
        over = await visitor.overflow()
        if over > 0:
            wrong.append(f"{path} is {over} px too wide at {width}")
        name = kind_of(path).strip("/").replace("/", "-").replace("…", "one") or "overview"
        await visitor.keep(chosen(os.environ), f"{name}-{label}-{width}")
    return wrong
