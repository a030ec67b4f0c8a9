"""`faena completion`: a script for the shell, which then completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from faena.cli.argument import common, example
from faena.cli.output import Output
from faena.errors import InternalError

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=example(
        "faena completion bash >> ~/.bashrc",
        "faena completion fish > ~/.config/fish/completions/faena.fish",
    )
)
@click.argument("shell", type=click.Choice(_SHELLS))
@common
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete commands, options and their values."""
    kind = get_completion_class(shell)
    if kind is None:
        raise InternalError(f"click knows no completion for {shell}")
    output = context.ensure_object(Output)
    source = kind(context.find_root().command, {}, "faena", "_FAENA_COMPLETE").source()
    output.say({"shell": shell, "script": source}, source.rstrip("\n"))
