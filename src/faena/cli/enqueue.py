"""`faena enqueue`: enqueue a job by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app, find_queue
from faena.cli.argument import DURATION, EXPIRY, INSTANT, Whole, common, example, split, words
from faena.cli.output import Output
from faena.errors import ConfigError, PayloadError, nearest
from faena.job import BY_HEADER
from faena.options import Durability, Unique, UniqueMode
from faena.retry import MOST_ATTEMPTS
from faena.task import Receipt, Task
from faena.values.names import check_label
from faena.values.numbers import read_whole

_TIMED: Final = (UniqueMode.THROTTLE, UniqueMode.DEBOUNCE)


@click.command(
    epilog=example(
        """faena enqueue shop.tasks:app mail/send '{"to": "ana"}' --tenant acme --delay 5m""",
        "faena enqueue mail/send @order.json --id order-7",
        "jq .order event.json | faena enqueue mail/send -",
    )
)
@words("[MODULE:APP] QUEUE/TASK [PAYLOAD]")
@click.option("--tenant", help="The tenant that the job is for.")
@click.option("--key", help="The key for ordering and limits by key.")
@click.option("--delay", type=DURATION, help="How long the job waits before it is ready: 5m.")
@click.option("--at", type=INSTANT, help="When it becomes ready: 2026-05-01T09:00+02:00.")
@click.option("--expires", type=EXPIRY, help="When it is too late to start: 1h, or an instant.")
@click.option("--priority", help="1 (soonest) to 100, or a level's name.")
@click.option("--id", "job_id", help="The job's id; the same id is the same job.")
@click.option("--unique", metavar="KEY", help="Jobs with the same key are duplicates.")
@click.option(
    "--unique-mode",
    type=click.Choice([mode.value for mode in UniqueMode]),
    help="How long the key is held.  [default: while_live]",
)
@click.option("--unique-ttl", type=DURATION, help="The ttl of throttle and debounce.")
@click.option("--unique-delay", type=DURATION, help="How long a debounced job waits.")
@click.option("--replace", metavar="KEY", help="Replace a waiting job with the same key.")
@click.option(
    "--on-conflict",
    type=click.Choice(["raise", "keep"]),
    help="What to do when another job has the id.  [default: raise]",
)
@click.option("--durability", help="memory, replicated(n) or fsynced; replicated is replicated(1).")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=TEXT", help="A header; repeatable."
)
@click.option("--by", help="Who enqueues it; stored in the header faena-by.")
@click.option(
    "--cost",
    "costs",
    multiple=True,
    metavar="UNIT=N",
    help="The estimated cost, for limits by cost: tokens=1200; repeatable.",
)
@click.option("--attempts", type=Whole(1, MOST_ATTEMPTS), help="Maximum number of attempts.")
@click.option("--timeout", type=DURATION, help="How long an attempt may run: 90s.")
@common
@click.pass_obj
def enqueue(output: Output, words: tuple[str, ...], **given: Any) -> None:
    """Enqueue a job and print its id.

    PAYLOAD is JSON, @FILE, or - for standard input; leave it out if the task takes none.
    """
    target, (name, *rest) = split(words, "QUEUE/TASK", rest="PAYLOAD")
    if len(rest) > 1:
        raise click.UsageError(f"unexpected extra argument {rest[1]!r}")
    options = _options(**given)
    payload = [_payload(text) for text in rest]
    app = find_app(target)
    task = _task(app, name)
    receipt: Receipt[Any] = session.run(app, lambda: task.enqueue(*payload, **options))
    told = {
        "id": receipt.id,
        "queue": task.queue,
        "task": task.name,
        "status": receipt.status,
        "state": receipt.state,
        "replaced": receipt.replaced,
        "is_different": receipt.is_different,
        "retry_after_s": receipt.retry_after,
        "reason": receipt.reason,
        "durability": receipt.durability,
    }
    output.say(told, receipt.id)
    if not output.is_json:
        _remark(receipt, Durability.of(given["durability"] or receipt.durability))


def _remark(receipt: Receipt[Any], wanted: Durability) -> None:
    """Print remarks on standard error; standard output has only the id."""
    if Durability.of(receipt.durability) != wanted:
        click.echo(
            f"warning: the job is enqueued, but durability {wanted} was not confirmed in time, "
            f"only {receipt.durability}",
            err=True,
        )
    if receipt.replaced:
        click.echo(f"replaced job {receipt.replaced}", err=True)
    if receipt.status == "duplicate":
        other = " with another task, payload, tenant or key" if receipt.is_different else ""
        click.echo(f"already exists{other}; {receipt.state}", err=True)


def _task(app: Faena, name: str) -> Task[Any, Any]:
    queue_name, slash, task = name.rpartition("/")
    if not slash:
        known = [f"{queue.name}/{one}" for queue in app.queues.values() for one in queue.tasks]
        close = next((one for one in known if one.endswith(f"/{name}")), None)
        hint = f"; did you mean {close!r}?" if close else ""
        raise click.UsageError(
            f"QUEUE/TASK must be a queue and a task, such as mail/send, got {name!r}{hint}"
        )
    tasks = find_queue(app, queue_name).tasks
    if task not in tasks:
        hint = nearest(task, tasks)
        raise ConfigError(f"no task {task!r} on queue {queue_name}; {hint}", field="task")
    return tasks[task]


def _payload(text: str) -> Any:
    try:
        return msgspec.json.decode(_read(text))
    except (msgspec.DecodeError, RecursionError) as error:
        is_bare = text != "-" and text[:1] not in set('@[{"')
        hint = """; a JSON string needs its own quotes: '"ana"'""" if is_bare else ""
        raise PayloadError(
            f"PAYLOAD must be JSON, @FILE or -: {error}{hint}", op="enqueue"
        ) from None


def _read(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    if not text.startswith("@"):
        return text.encode(errors="surrogateescape")
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise click.UsageError(
            f"PAYLOAD must be a readable file, got {text!r}: {error.strerror}"
        ) from None


def _options(
    *,
    job_id: str | None,
    headers: tuple[str, ...],
    costs: tuple[str, ...],
    by: str | None,
    **given: Any,
) -> Any:
    unique = _unique(**{name: given.pop(name) for name in list(given) if "unique" in name})
    if given["priority"] is not None:
        given["priority"] = read_whole(given["priority"])
    pairs = [text.partition("=") for text in headers]
    for name, sign, _ in pairs:
        if not sign or not name:
            raise click.UsageError(f"--header must be NAME=TEXT, got {name!r}")
    if by is not None:
        pairs.append((BY_HEADER, "=", check_label("by", by)))
    options = given | {"id": job_id, "unique": unique}
    if pairs:
        options["headers"] = {name: text for name, _, text in pairs}
    if costs:
        options["cost"] = _costs(costs)
    return {name: value for name, value in options.items() if value is not None}


def _costs(texts: tuple[str, ...]) -> dict[str, int]:
    costs: dict[str, int] = {}
    for text in texts:
        unit, _, digits = text.partition("=")
        if not isinstance(number := read_whole(digits), int):
            raise click.UsageError(f"--cost must be UNIT=N such as tokens=1200, got {text!r}")
        if unit in costs:
            raise click.UsageError(f"--cost must name each unit once, got {unit!r} again")
        costs[unit] = number
    return costs


def _unique(
    *,
    unique: str | None,
    unique_mode: str | None,
    unique_ttl: str | None,
    unique_delay: str | None,
) -> Unique | None:
    if unique is None:
        if unique_mode or unique_ttl or unique_delay:
            raise click.UsageError(
                "--unique-mode, --unique-ttl and --unique-delay need --unique KEY"
            )
        return None
    mode = UniqueMode(unique_mode or UniqueMode.WHILE_LIVE)
    if (mode in _TIMED) != (unique_ttl is not None):
        needs = "must" if mode in _TIMED else "must not"
        raise click.UsageError(f"--unique-ttl {needs} be given with --unique-mode {mode}")
    if unique_delay is not None and mode is not UniqueMode.DEBOUNCE:
        raise click.UsageError("--unique-delay needs --unique-mode debounce")
    if mode is UniqueMode.DEBOUNCE:
        return Unique.debounce(unique, unique_ttl or "", unique_delay)
    if mode is UniqueMode.THROTTLE:
        return Unique.throttle(unique, unique_ttl or "")
    return Unique(mode, unique)
