"""Renders pages: everything that comes from outside is escaped, and a missing value is an error."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from faena.web.access.role import Permission
from faena.web.figure import Figures
from faena.web.route import Visit
from faena.web.standing import banner, figures
from faena.web.words import LANGUAGES, Speaker, language_of

_STATIC: Final = ("style.css", "dashboard.js")


class Templates:
    """The templates of all dashboards of a process."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("faena.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    @cached_property
    def static(self) -> dict[str, tuple[bytes, str]]:
        """Files that pages need: content, and a digest that is part of their address."""
        folder = files("faena.web").joinpath("static")
        found = {name: folder.joinpath(name).read_bytes() for name in _STATIC}
        return {
            name: (content, hashlib.sha256(content).hexdigest()[:12])
            for name, content in found.items()
        }

    def page(self, visit: Visit, name: str, *, status: int = 200, **data: Any) -> Response:
        """A whole page."""
        return HTMLResponse(self.text(visit, name, **data), status)

    def text(self, visit: Visit, name: str, **data: Any) -> str:
        """What a template says, for this reader."""
        language = spoken(visit)
        say = Speaker(language)
        theme = visit.request.cookies.get("faena-theme")
        return self._environment.get_template(name).render(
            may=Permission,
            visit=visit,
            site=visit.site,
            app_name=visit.app.name,
            known=visit.known,
            root=visit.root,
            path=visit.request.url.path.removeprefix(visit.root),
            here=_here(visit),
            frame=visit.frame,
            around=_around(visit, say),
            static={
                name: f"{visit.root}/static/{tag}/{name}" for name, (_, tag) in self.static.items()
            },
            language=language,
            languages=LANGUAGES,
            theme=theme if theme in {"light", "dark"} else "",
            t=say,
            figure=Figures(say),
            **data,
        )


def _here(visit: Visit) -> str:
    """The address of this page, to come back to."""
    kept = [(name, one) for name, one in visit.request.query_params.multi_items() if name != "done"]
    path = visit.request.url.path.removeprefix(visit.root)
    return f"{path}?{urlencode(kept)}" if kept else path


def _around(visit: Visit, say: Speaker) -> Mapping[str, str]:
    """The texts of banner and badges; who sees one tenant is told what its users are told."""
    standing = visit.frame.standing
    if standing is None or visit.known is None:
        return {}
    return (banner if visit.known.caller.tenant else figures)(standing, say)


def spoken(visit: Visit) -> str:
    """The language of a reader."""
    request = visit.request
    return language_of(
        request.query_params.get("lang"),
        request.cookies.get("faena-language"),
        request.headers.get("accept-language", ""),
    )
