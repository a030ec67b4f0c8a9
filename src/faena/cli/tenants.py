"""Commands on the tenants of a queue: their jobs, shares and settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import app_and_queue, find_app, find_queue
from faena.cli.argument import (
    DURATION,
    LASTING,
    NUMBER,
    TENANT_RATE,
    Whole,
    by,
    common,
    example,
    split,
    words,
)
from faena.cli.json_output import document
from faena.cli.output import Output, facts, instant, plain, table
from faena.inspection.gate import Gate
from faena.limits import Limit
from faena.queue import Queue
from faena.tenancy.shares import Shares, Waits
from faena.tenancy.tenants import SETTINGS, Tenant, TenantView

_NOBODY = "(no tenant)"
_NO_TENANT = "no tenant has jobs or settings of its own"
_HOUR = 59
_UNSEEN = "is waiting or running, and none was started in the last hour: is its name right?"
_HEADS = (
    "tenant",
    "live",
    "running",
    "last minute",
    "this minute",
    "waited",
    "kept back",
    "decided",
)


class _Tenants(click.Group):
    """Shows the tenants unless the first argument is a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_told = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if is_told else ["show", *args])


@click.group(
    cls=_Tenants,
    epilog=example(
        "faena tenants shop.tasks:app mail",
        "faena tenants shop.tasks:app mail acme",
        "faena tenants set mail acme --limit 5/s --for 1h",
    ),
)
def tenants() -> None:
    """Show the tenants of a queue, or change settings of one of them.

    MODULE:APP QUEUE [TENANT] alone shows them; every command takes --json.
    """


@tenants.command(
    epilog=example("faena tenants show shop.tasks:app mail", "faena tenants mail acme")
)
@words("[MODULE:APP] QUEUE [TENANT]")
@click.option(
    "--limit",
    type=Whole(1, 1000),
    default=50,
    show_default=True,
    help="How many tenants, those with the most jobs first.",
)
@common
@click.pass_obj
def show(output: Output, words: tuple[str, ...], limit: int) -> None:
    """Show the tenants of a queue, or one of them: jobs, shares, settings."""
    target, (name, *rest) = split(words, "QUEUE", rest="TENANT")
    if len(rest) > 1:
        raise click.UsageError(f"unexpected extra argument {rest[1]!r}")
    app = find_app(target)
    queue = find_queue(app, name)
    if rest:
        _show_tenant(output, app, queue, queue.tenant(rest[0] or None).view)
        return
    found, shares = session.run(app, lambda: _both(queue, limit))
    output.list(map(_document, found), lambda console: _list(console, found, shares))


async def _both(queue: Queue, limit: int) -> tuple[list[TenantView], list[Shares]]:
    return await queue.tenants(limit=limit), await queue.shares()


# -- changing -----------------------------------------------------------------------------------


def _decide(
    output: Output, given: Sequence[str], work: Callable[[Tenant], Awaitable[TenantView]]
) -> None:
    """Change a tenant, and show the result."""
    app, queue, tenant = _find(given)
    _show_tenant(output, app, queue, lambda: work(tenant))


def _show_tenant(
    output: Output, app: Faena, queue: Queue, work: Callable[[], Awaitable[TenantView]]
) -> None:
    """Show a tenant; if it has no jobs, say so: its name may be misspelt."""

    async def both() -> tuple[TenantView, bool]:
        view = await work()
        return view, view.live > 0 or await _was_served(queue, view.tenant or "")

    view, is_seen = session.run(app, both)

    def draw(console: Console) -> None:
        _draw(console, view)
        if not is_seen:
            console.print(Text(f"no job of this tenant {_UNSEEN}"))

    output.show(_document(view), draw)


async def _was_served(queue: Queue, tenant: str) -> bool:
    minutes = await queue.shares(minutes=_HOUR)
    return any(tenant in {**minute.given, **minute.throttled_us} for minute in minutes)


def _end(
    output: Output, given: Sequence[str], work: Callable[[Tenant], Awaitable[TenantView]]
) -> None:
    """Remove settings of a tenant, and show which."""
    before, after = _before_and_after(given, work)
    left = {name for name, text in _decided(after) if text is not None}
    ended = {name: text for name, text in _decided(before) if text and name not in left}

    def view(console: Console) -> None:
        said = "; ".join(f"{name} {text}" for name, text in ended.items())
        console.print(facts([("ended", said or "nothing")]))
        _draw(console, after)

    output.show({**_document(after), "ended": list(ended)}, view)


def _move(
    output: Output, given: Sequence[str], work: Callable[[Tenant], Awaitable[TenantView]]
) -> None:
    """Move a tenant to another shard, or say that it was there already."""
    before, after = _before_and_after(given, work)
    is_same = before.is_dedicated == after.is_dedicated and not before.is_moving

    def view(console: Console) -> None:
        if is_same:
            where = "has a shard of its own" if after.is_dedicated else "shares the queue"
            console.print(Text(plain(f"{after.tenant or _NOBODY} already {where}: nothing moved")))
        _draw(console, after)

    output.show({**_document(after), "moved": not is_same}, view)


def _before_and_after(
    given: Sequence[str], work: Callable[[Tenant], Awaitable[TenantView]]
) -> tuple[TenantView, TenantView]:
    app, _, tenant = _find(given)

    async def both() -> tuple[TenantView, TenantView]:
        return await tenant.view(), await work(tenant)

    return session.run(app, both)


def _find(given: Sequence[str]) -> tuple[Faena, Queue, Tenant]:
    app, queue, (tenant,) = app_and_queue(given, "TENANT")
    return app, queue, queue.tenant(tenant or None)


_wait = click.option(
    "--wait",
    type=DURATION,
    default="10m",
    show_default=True,
    help="How long to wait for its jobs to move; workers continue after that.",
)


@tenants.command(epilog=example("faena tenants dedicate shop.tasks:app mail acme --by ana"))
@words("[MODULE:APP] QUEUE TENANT")
@by
@_wait
@common
@click.pass_obj
def dedicate(output: Output, words: tuple[str, ...], by: str, wait: str) -> None:
    """Give a tenant a shard of its own; its waiting jobs move there in order."""
    _move(output, words, lambda tenant: tenant.dedicate(by=by, wait=wait))


@tenants.command(epilog=example("faena tenants rejoin shop.tasks:app mail acme"))
@words("[MODULE:APP] QUEUE TENANT")
@by
@_wait
@common
@click.pass_obj
def rejoin(output: Output, words: tuple[str, ...], by: str, wait: str) -> None:
    """Return a tenant to the shards that it shares with others."""
    _move(output, words, lambda tenant: tenant.rejoin(by=by, wait=wait))


@tenants.command(
    "set",
    epilog=example(
        "faena tenants set shop.tasks:app mail acme --limit 5/s --limit 100/min --for 1h",
        "faena tenants set mail acme --weight 3 --drop limits",
    ),
)
@words("[MODULE:APP] QUEUE TENANT")
@click.option(
    "--limit", "limits", type=TENANT_RATE, multiple=True, help="The most jobs per time; repeatable."
)
@click.option("--no-limits", is_flag=True, help="No limits, not even the queue's.")
@click.option("--max-running", type=Whole(), help="The most jobs running at a time.")
@click.option("--weight", type=NUMBER, help="Its weight in the queue; others have 1.")
@click.option("--size", type=Whole(), help="The most live jobs; more are refused.")
@click.option(
    "--drop", type=click.Choice(SETTINGS), multiple=True, help="Use the queue's setting again."
)
@click.option("--for", "lasting", type=LASTING, help="End these settings after this time: 5m, 2h.")
@by
@common
@click.pass_obj
def set_(
    output: Output, words: tuple[str, ...], *, lasting: str | None, by: str, **given: Any
) -> None:
    """Set limits, the most running jobs, the weight or the size of one tenant."""
    settings = _settings(**given)
    _decide(output, words, lambda tenant: tenant.configure(lasting=lasting, by=by, **settings))


def _settings(
    limits: Sequence[Limit], drop: Sequence[str], *, no_limits: bool, **numbers: float | None
) -> Any:
    if limits and no_limits:
        raise click.UsageError("--limit and --no-limits must not both be given")
    settings: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    if limits or no_limits:
        settings["limits"] = list(limits)
    for name in drop:
        if name in settings:
            raise click.UsageError(f"{name} must be set or dropped, not both")
    if not settings and not drop:
        raise click.UsageError("give at least one setting, such as --weight 2")
    return settings | dict.fromkeys(drop)


@tenants.command(epilog=example("faena tenants hold mail acme --reason 'invoice unpaid' --for 1d"))
@words("[MODULE:APP] QUEUE TENANT")
@click.option("--reason", default="operator", show_default=True, help="Why.")
@click.option("--for", "lasting", type=LASTING, help="End the hold after this time: 5m, 2h.")
@by
@common
@click.pass_obj
def hold(output: Output, words: tuple[str, ...], reason: str, lasting: str | None, by: str) -> None:
    """Hold a tenant: no more of its jobs start; running ones continue, new ones are accepted."""
    _decide(output, words, lambda tenant: tenant.hold(reason, lasting=lasting, by=by))


@tenants.command(epilog=example("faena tenants release shop.tasks:app mail acme"))
@words("[MODULE:APP] QUEUE TENANT")
@by
@common
@click.pass_obj
def release(output: Output, words: tuple[str, ...], by: str) -> None:
    """End the hold of one tenant; its other settings stay."""
    _end(output, words, lambda tenant: tenant.release(by=by))


@tenants.command(epilog=example("faena tenants reset shop.tasks:app mail acme"))
@words("[MODULE:APP] QUEUE TENANT")
@by
@common
@click.pass_obj
def reset(output: Output, words: tuple[str, ...], by: str) -> None:
    """Remove the hold and all settings of one tenant; the queue's settings apply again."""
    _end(output, words, lambda tenant: tenant.reset(by=by))


# -- showing ------------------------------------------------------------------------------------


def _document(view: TenantView) -> dict[str, Any]:
    told: dict[str, Any] = document(view)
    return told | {"is_held": view.is_held}


def _list(console: Console, found: Sequence[TenantView], shares: Sequence[Shares]) -> None:
    rows = [
        (
            view.tenant or _NOBODY,
            view.live,
            view.running,
            *(f"{minute.of(view.tenant):.1%}" for minute in shares),
            *_delays(shares, view.tenant or ""),
            "; ".join(f"{name} {text}" for name, text in _decided(view) if text is not None),
        )
        for view in found
    ]
    spare = ("kept back", "waited", "last minute")
    console.print(table(_HEADS, rows, spare=spare, text="decided", none=_NO_TENANT))
    last = shares[0].fairness
    console.print(Text(f"fairness of the last minute: {'-' if last is None else f'{last:.3f}'}"))


def _delays(shares: Sequence[Shares], tenant: str) -> tuple[str, str]:
    """The mean wait of a job in these minutes, and how long the tenant was throttled."""
    measured = [minute.waits[tenant] for minute in shares if tenant in minute.waits]
    waits = Waits(sum(one.number for one in measured), sum(one.sum_us for one in measured))
    throttled = sum(minute.throttled_us.get(tenant, 0) for minute in shares)
    waited = "-" if waits.mean_us is None else f"{waits.mean_us / 1e6:.3f} s"
    return waited, f"{throttled / 1e6:.1f} s" if throttled else "-"


def _draw(console: Console, view: TenantView) -> None:
    rows: list[tuple[str, object]] = [
        ("tenant", view.tenant or _NOBODY),
        ("live", view.live),
        ("running", view.running),
        *_decided(view),
        ("by", view.by),
        ("at", instant(view.at)),
        ("ends", instant(view.ends_at)),
        *(("kept back by", _gate(gate)) for gate in view.gates),
        ("looked at again", _until(view.parked_until, "when a job ends or it is released")),
    ]
    console.print(facts(rows))


def _gate(gate: Gate) -> str:
    detail = f": {gate.detail}" if gate.detail else ""
    until = f" until {instant(gate.until)}" if gate.until else ""
    return plain(f"{gate.name}{detail}{until}")


def _shard(view: TenantView) -> str | None:
    where = "of its own" if view.is_dedicated else None
    return f"{where or 'shared'}, still moving" if view.is_moving else where


def _decided(view: TenantView) -> list[tuple[str, str | None]]:
    limits = None if view.limits is None else ", ".join(map(str, view.limits)) or "none"
    held = _until(view.held_until, "released")
    return [
        ("limits", limits),
        ("max_running", _number(view.max_running)),
        ("weight", _number(view.weight)),
        ("size", _number(view.size)),
        ("held", held and plain(f"until {held}: {view.reason}")),
        ("shard", _shard(view)),
    ]


def _until(us: int | None, open_end: str) -> str | None:
    return open_end if us == 0 else instant(us)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"
