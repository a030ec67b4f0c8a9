"""`faena dashboard`: serves the dashboard and the admin API of an app."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

import click

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import Whole, common, example, split, words
from faena.cli.output import Output
from faena.errors import ConfigError

_PORT: Final = 3000
_PATH: Final = "/admin/queues"
_API: Final = "/admin/api"


@click.command(
    epilog=example("faena dashboard shop.tasks:app", "faena dashboard shop.tasks:app --link")
)
@words("[MODULE:APP]")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=Whole(0, 65_535), default=_PORT, show_default=True, help="0: any free one."
)
@click.option("--address", help="What browsers see, behind a proxy: https://ops.example.com/jobs.")
@click.option("--link", is_flag=True, help="Print a link that lets one person in, once.")
@common
@click.pass_obj
def dashboard(
    output: Output,
    words: tuple[str, ...],
    *,
    host: str,
    port: int,
    address: str | None,
    link: bool,
) -> None:
    """Serve the dashboard until Ctrl-C.

    People sign in with the password of `faena users add`, programs with a token of `faena tokens
    add`. Behind a proxy that knows people, mount it in a program of yours: see docs/dashboard.md.
    """
    app = find_app(split(words)[0])
    if link and not _is_here(host):
        raise ConfigError(f"--link needs an address of this machine, got --host {host}")
    listening = _listen(host, port)
    session.run(app, lambda: _serve(output, app, listening, address, has_link=link))


async def _serve(
    output: Output, app: Faena, listening: socket.socket, seen: str | None, *, has_link: bool
) -> None:
    try:
        import uvicorn  # noqa: PLC0415 - an extra
        from starlette.applications import Starlette  # noqa: PLC0415 - an extra
        from starlette.responses import RedirectResponse  # noqa: PLC0415 - an extra
        from starlette.routing import Mount, Route  # noqa: PLC0415 - an extra

        from faena.web import Access  # noqa: PLC0415 - an extra
        from faena.web import dashboard as made  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigError(
            "faena dashboard needs the extra web: install it "
            "(in a clone of Faena: pip install '.[web]')"
        ) from None
    web = made(app, access=Access(link=has_link), address=seen)
    site = await web.site()
    owners = [one for one in await site.gate.accounts.list() if one.role == "owner"]
    if not (owners or has_link):
        raise ConfigError(
            "nobody could sign in: make an owner with `faena users add NAME --role owner`, "
            "or use --link on this machine"
        )

    async def there(_request: object) -> RedirectResponse:
        return RedirectResponse(f"{_PATH}/")

    served = Starlette(routes=[Route("/", there), Mount(_PATH, web), Mount(_API, web.api)])
    address = seen or _address(listening)
    way_in = await web.link(address) if has_link else f"{address}/"
    output.say({"url": f"{address}/", "link": way_in if has_link else None}, way_in)
    config = uvicorn.Config(served, log_level="warning", lifespan="off", access_log=False)
    config.timeout_graceful_shutdown = 3
    try:
        await uvicorn.Server(config).serve([listening])
    except asyncio.CancelledError:
        pass
    finally:
        await web.close()


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{_PATH}"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"--port must be free, got {port}: {error.strerror or error}", field="port"
        ) from None
    return listening


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
