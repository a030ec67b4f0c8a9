"""Portuguese: each page's sentences in a module of its own."""

from __future__ import annotations

from typing import Final

from faena.web.words.pt.shell import SHELL

PT: Final[dict[str, str]] = {
    **SHELL,
}
