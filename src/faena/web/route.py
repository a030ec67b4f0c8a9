"""What the dashboard and the API answer, each route with the permission it needs.

A route that is not declared here does not exist, and one without a permission is for strangers: a
test compares all of them with a table of roles.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from faena.web.access.caller import Caller
from faena.web.access.gate import Known
from faena.web.access.role import Permission
from faena.web.frame import Frame

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.web.site import Site

Kind = Literal["page", "api"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request, by somebody who may send it."""

    request: Request
    site: Site
    known: Known | None
    """None for strangers, where a route is open to them."""
    frame: Frame = field(default_factory=Frame)
    """What a page has around its own content."""

    @property
    def app(self) -> Faena:
        """Whose dashboard it is."""
        return self.site.app

    @property
    def caller(self) -> Caller:
        """Who sends it."""
        if self.known is None:
            raise LookupError("a route for strangers has no caller")
        return self.known.caller

    @property
    def root(self) -> str:
        """Where the dashboard is mounted: links begin with it."""
        return str(self.request.scope.get("root_path", ""))

    @property
    def address(self) -> str:
        """The dashboard's address, as the browser has it."""
        url = self.request.url
        return f"{url.scheme}://{url.netloc}{self.root}"

    @property
    def open_places(self) -> frozenset[str]:
        """The paths of the pages that the caller may see."""
        return frozenset(
            path
            for path, route in self.site.places.items()
            if route.needs is not None
            and self.caller.may(route.needs)
            and (route.is_for_tenant or self.caller.tenant is None)
        )


Answer = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One declared route."""

    method: str
    path: str
    """Below where the dashboard is mounted."""
    name: str
    needs: Permission | None
    """None: strangers may ask too."""
    kind: Kind
    answer: Answer
    is_for_tenant: bool = False
    """Whether one who sees a single tenant may ask: the answer then has nothing of others."""
    operation: Any = None
    """The operation that it carries out, if it changes something."""
    reading: Any = None
    """The reading that it answers, if it is the API's."""
