"""Where each command is: its module is loaded when it is asked for, so that help comes at once."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

import click

from faena.cli.argument import Commands

CATALOGUE: Final[Mapping[str, tuple[str, str]]] = {
    "audit": ("checkup", "Compare what is stored with what the engine promises."),
    "cancel": ("change", "Cancel jobs; a running one is told to stop."),
    "change": ("change", "Change when waiting jobs run, or their priority."),
    "clean": ("queues", "Remove finished jobs that are old enough."),
    "configure": ("settings", "Change settings of a queue at run time, or show them."),
    "dev": ("dev", "Run a worker that restarts when the code changes."),
    "dlq": ("redrive", "The dead-letter desk: find dead jobs, retry them as new, discard them."),
    "doctor": ("checkup", "Check a broker, and say how to fix what is wrong."),
    "drain": ("queues", "Remove every job that waits."),
    "enqueue": ("enqueue", "Put a job on its queue and print its id."),
    "events": ("events", "Follow what happens to jobs, as it happens."),
    "explain": ("explain", "Say what a job waits for, or what became of it."),
    "flow": ("flow", "Flows: jobs that wait for each other."),
    "groups": ("groups", "List the groups under way, or show one."),
    "health": ("health", "Say whether jobs can be enqueued; for probes."),
    "job": ("jobs", "Show everything known of one job."),
    "jobs": ("jobs", "List jobs of a state, a page at a time."),
    "obliterate": ("queues", "Remove a queue with everything in it."),
    "pause": ("queues", "Serve no more jobs of some queues."),
    "promote": ("change", "Run delayed jobs now."),
    "queues": ("queues", "Show every queue: jobs per state, holds, workers."),
    "remove": ("change", "Remove jobs for good."),
    "rerun": ("change", "Run finished jobs again: the same jobs, with fresh attempts."),
    "reset": ("settings", "Let code decide settings of a queue again."),
    "reshard": ("shards", "Spread a queue over more shards, or over fewer."),
    "resume": ("queues", "End a pause."),
    "retry-failed": ("redrive", "Redrive all dead jobs: retry them as new jobs."),
    "schedules": ("schedules", "List the schedules, look at or change one, or make one."),
    "shards": ("shards", "Show where queues live, and what moves."),
    "shares": ("shares", "Show what each tenant of a queue was given."),
    "tasks": ("tasks", "Show the tasks that the app declares."),
    "tenants": ("tenants", "Show the tenants of a queue, or decide something for one."),
    "worker": ("worker", "Run jobs of the app's queues until SIGTERM or Ctrl-C."),
    "workers": ("workers", "Show who runs jobs, and which ones."),
}
"""The module and a line of help, by name."""

_MEANT: Final[Mapping[str, str]] = {
    "retry": "'rerun' runs the same job again, 'dlq retry' makes a new job of a dead one",
}


class Roof(Commands):
    """All commands, each of which is loaded with its module."""

    meant = _MEANT

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        """Every name, of those that are not loaded too."""
        return sorted(CATALOGUE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command."""
        if cmd_name not in self.commands and cmd_name in CATALOGUE:
            module = importlib.import_module(f"faena.cli.{CATALOGUE[cmd_name][0]}")
            for one in vars(module).values():
                if isinstance(one, click.Command) and one.name == cmd_name:
                    self.commands[cmd_name] = one
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The choice, without a look at any of them."""
        rows = [(name, CATALOGUE[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
