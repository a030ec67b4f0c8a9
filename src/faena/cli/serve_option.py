"""`--serve`: where a worker answers over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from faena.errors import ConfigError
from faena.worker.serve.address import OFF, VARIABLE, ServeAddress

DEFAULT: Final = "127.0.0.1"
"""A host alone has the usual port, which may be taken."""

F = TypeVar("F", bound=Callable[..., Any])


def serve_at(*, default: str, words: str, shown: str) -> Callable[[F], F]:
    """The option; its value is an address, or None."""
    return click.option(
        "--serve",
        metavar="ADDRESS",
        envvar=VARIABLE,
        default=default,
        show_default=shown,
        callback=_read,
        help=words,
    )


def _read(_ctx: click.Context, _param: click.Parameter, value: str) -> ServeAddress | None:
    try:
        return ServeAddress.parse(value)
    except ConfigError as error:
        raise click.BadParameter(str(error).replace("serve must", "it must", 1)) from None


__all__ = ["DEFAULT", "OFF", "serve_at"]
