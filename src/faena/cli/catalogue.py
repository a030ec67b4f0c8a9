"""The commands. A command's module is imported when it is used, so that help is fast."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

import click

from faena.cli.argument import Commands

CATALOGUE: Final[Mapping[str, tuple[str, str]]] = {
    "advice": ("advice", "Tell how many slots queues need."),
    "alerts": ("alerts", "List alerts that fire, silence them, try a channel."),
    "audit": ("checkup", "Check that the stored data is consistent."),
    "budgets": ("budgets", "List budgets, or report what calls to upstreams cost."),
    "cancel": ("change", "Cancel waiting or running jobs."),
    "change": ("change", "Change the delay or priority of waiting jobs."),
    "clean": ("queues", "Remove finished jobs older than an age."),
    "completion": ("completion", "Print a script for the completion of your shell."),
    "configure": ("settings", "Show or change the settings of a queue."),
    "dashboard": ("dashboard", "Serve the dashboard and the admin API."),
    "dev": ("dev", "Run a worker that restarts when the code changes."),
    "dlq": ("redrive", "The dead-letter desk: find, retry, discard or resolve dead jobs."),
    "doctor": ("checkup", "Check a broker, and tell how to fix problems."),
    "drain": ("queues", "Remove all waiting jobs of a queue."),
    "enqueue": ("enqueue", "Enqueue a job and print its id."),
    "events": ("events", "Follow the events of jobs."),
    "explain": ("explain", "Explain why a job waits, or how it ended."),
    "features": ("features", "List features and levels, set states, switch levels."),
    "flow": ("flow", "Flows: jobs that wait for each other."),
    "groups": ("groups", "List groups of jobs, or show one."),
    "health": ("health", "Check that jobs can be enqueued; for probes."),
    "job": ("jobs", "Show one job."),
    "jobs": ("jobs", "List the jobs of a queue in one state."),
    "metrics": ("metrics", "Print or serve the metrics of all queues, for Prometheus."),
    "monitor": ("monitor", "Watch queues and jobs live, and act on them by keys."),
    "obliterate": ("queues", "Remove a queue with everything in it."),
    "pause": ("queues", "Pause queues: no more jobs start."),
    "pg": ("pg", "The PostgreSQL beside the broker: migrations, partitions, archives."),
    "promote": ("change", "Make delayed jobs ready now."),
    "queues": ("queues", "Show every queue: jobs per state, holds, workers."),
    "remove": ("change", "Remove jobs for good."),
    "rerun": ("change", "Run finished jobs again: the same jobs, with fresh attempts."),
    "reset": ("settings", "Return settings of a queue to the values in code."),
    "reshard": ("shards", "Change the number of shards of a queue."),
    "resume": ("queues", "End a pause."),
    "retry-failed": ("redrive", "Redrive all dead jobs: retry them as new jobs."),
    "schedules": ("schedules", "List, show, create or change schedules."),
    "shards": ("shards", "Show the shards of queues, and what is moving."),
    "shares": ("shares", "Show each tenant's share of a queue, by minute."),
    "stats": ("stats", "Show what happened to jobs lately, and how long they took."),
    "status": ("status", "Show how everything is, on one screen."),
    "tasks": ("tasks", "Show the tasks that the app declares."),
    "tenants": ("tenants", "Show the tenants of a queue, or change settings of one."),
    "tokens": ("users", "Tokens of programs that use the admin API."),
    "upstreams": ("upstreams", "List upstreams and their breakers, or call a panic."),
    "users": ("users", "People who sign in to the dashboard."),
    "what-if": ("advice", "Replay what came to a queue with other slots, limits or weights."),
    "worker": ("worker", "Run the jobs of the app's queues until SIGTERM or Ctrl-C."),
    "workers": ("workers", "Show workers, and the jobs they run."),
}
"""Module and help line, by command."""

_MEANT: Final[Mapping[str, str]] = {
    "retry": "'rerun' runs the same job again, 'dlq retry' retries a dead job as a new one",
}


class RootCommands(Commands):
    """All commands; each is imported on first use."""

    meant = _MEANT

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        """All names, without importing any command."""
        return sorted(CATALOGUE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self.commands and cmd_name in CATALOGUE:
            module = importlib.import_module(f"faena.cli.{CATALOGUE[cmd_name][0]}")
            for one in vars(module).values():
                if isinstance(one, click.Command) and one.name == cmd_name:
                    self.commands[cmd_name] = one
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the list, without importing any command."""
        rows = [(name, CATALOGUE[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
