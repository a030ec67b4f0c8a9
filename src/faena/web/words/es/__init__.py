"""Spanish: each page's sentences in a module of its own."""

from __future__ import annotations

from typing import Final

from faena.web.words.es.shell import SHELL

ES: Final[dict[str, str]] = {
    **SHELL,
}
