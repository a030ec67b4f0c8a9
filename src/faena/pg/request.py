"""What a program offers to those whose data it holds: their archives back, and erasure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from faena.errors import ConfigError
from faena.options.fields import build
from faena.pg.archive.registry import Retained
from faena.pg.erasure.erasures import Erasures
from faena.pg.erasure.option import Erasure
from faena.pg.erasure.view import ErasureView
from faena.pg.retrieval.option import Retrieval
from faena.pg.retrieval.retrievals import Retrievals

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.pg.postgres import Postgres


class OnRequest(Retained):
    """The part of a PostgreSQL that answers requests of tenants."""

    def __init__(self, app: Faena) -> None:
        super().__init__(app)
        self._retrievals: Retrievals | None = None
        self._erasures: Erasures | None = None

    def retrieval(self, **options: Any) -> Retrievals:
        """Let tenants get their archived rows; `Retrieval` documents the options.

        Declare it in programs that answer requests and in those whose workers collect files. The
        app gets the queue `archives`, and a daily job that removes old files. Opens no connection.
        """
        if self._retrievals is not None:
            raise ConfigError("retrieval is declared twice", field="retrieval")
        made = build(Retrieval, "retrieval", options)
        self._retrievals = Retrievals(cast("Postgres", self), made)
        return self._retrievals

    @property
    def retrievals(self) -> Retrievals:
        """As declared with `retrieval`."""
        if self._retrievals is None:
            raise ConfigError(
                "archives can be retrieved after `pg.retrieval(secrets=[…])`, which is missing",
                field="retrieval",
            )
        return self._retrievals

    def erasure(self, **options: Any) -> Erasures:
        """Let all data of a tenant be erased; `Erasure` documents the options.

        The app gets the queue `erasures`, and a daily job that finishes what was interrupted.
        Opens no connection.
        """
        if self._erasures is not None:
            raise ConfigError("erasure is declared twice", field="erasure")
        made = build(Erasure, "erasure", options)
        self._erasures = Erasures(cast("Postgres", self), made)
        return self._erasures

    @property
    def erasures(self) -> Erasures:
        """As declared with `erasure`."""
        if self._erasures is None:
            raise ConfigError(
                "data can be erased after `pg.erasure()`, which is missing", field="erasure"
            )
        return self._erasures

    async def erase(
        self, *, tenant: str, by: str, reason: str, cancel_live: bool = False
    ) -> ErasureView:
        """Have everything erased that is held of a tenant, but what a law protects.

        Returns at once: a job does it. `by` and `reason` are recorded with the request. Refused
        while the tenant has live jobs, unless `cancel_live` has them cancelled.
        """
        return await self.erasures.erase(tenant, by=by, reason=reason, cancel_live=cancel_live)
