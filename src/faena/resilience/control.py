"""What operators do with upstreams, also with those that other programs declare."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from faena.engine import Engine
from faena.engine.calls import resilience, upstreams
from faena.engine.calls.resilience import Undeclared
from faena.engine.calls.upstreams import UpstreamView
from faena.errors import ConfigError, nearest, shown
from faena.resilience.money import TOTALS
from faena.values.duration import Duration, to_us
from faena.values.names import check_label, check_name, check_reason

T = TypeVar("T")


class UpstreamControl:
    """Views and panics of upstreams, by name; and forgetting those that no program declares."""

    def __init__(
        self, engine: Callable[[], Awaitable[Engine]], settings: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """`settings` are those of the program's own upstreams; more may be declared later."""
        self._engine, self._settings = engine, settings

    async def views(self) -> list[UpstreamView]:
        """Those of all that are declared, by any program."""
        engine = await self._engine()
        found = await upstreams.views(engine)
        missing = self._settings.keys() - {one.name for one in found} - {TOTALS}
        if not missing:
            return found
        await resilience.declare(engine, {name: self._settings[name] for name in missing})
        return await upstreams.views(engine)

    async def view(self, name: str, *, tenant: str | None = None) -> UpstreamView:
        """How one is, for all calls or for those of a tenant."""
        check_name("upstream", name)
        whose = "" if tenant is None else check_label("tenant", tenant)

        async def look(engine: Engine) -> UpstreamView:
            found = await upstreams.views(engine, [name], whose)
            if not found:
                raise Undeclared([name])
            return found[0]

        return await self._declared(name, look)

    async def panic(
        self, name: str, *, reason: str, by: str = "operator", lasting: Duration | None = None
    ) -> bool:
        """Permit no call until `end_panic`, or for a time; False if it is in panic already.

        Then that panic has this reason, author and end from now on.
        """
        check_name("upstream", name)
        why, who = check_reason(reason), check_label("by", by)
        us = None if lasting is None else to_us("lasting", lasting, least_us=1)
        return await self._declared(
            name, lambda engine: upstreams.panic(engine, name, why, who, us)
        )

    async def end_panic(self, name: str, *, by: str = "operator") -> bool:
        """Permit calls again, as its breaker has it; False if it was not in panic."""
        check_name("upstream", name)
        who = check_label("by", by)
        return await self._declared(name, lambda engine: upstreams.end_panic(engine, name, who))

    async def forget(self, name: str, *, by: str = "operator") -> None:
        """Remove all that the server knows of an upstream that this program does not declare.

        What its calls have cost stays in reports. A running program that still declares it does so
        again with its next call.
        """
        if check_name("upstream", name) in self._settings:
            raise ConfigError(
                f"upstream must be one that this program does not declare, got {shown(name)}: "
                f"remove app.upstream({shown(name)}) from the code first",
                field="upstream",
                value=name,
            )
        who = check_label("by", by)
        await self._declared(name, lambda engine: upstreams.forget(engine, name, who))

    @property
    def declares_totals(self) -> bool:
        """Whether this program declares budgets of all upstreams together."""
        return TOTALS in self._settings

    async def forget_totals(self, *, by: str = "operator") -> bool:
        """Remove the budgets of all upstreams together, which this program does not declare; False
        if there are none."""
        if TOTALS in self._settings:
            raise ConfigError(
                "total budgets must be ones that this program does not declare: remove "
                "app.total_budgets(…) from the code first",
                field="total_budgets",
            )
        try:
            await upstreams.forget(await self._engine(), TOTALS, check_label("by", by))
        except Undeclared:
            return False
        return True

    async def _declared(self, name: str, work: Callable[[Engine], Awaitable[T]]) -> T:
        """Do something with an upstream; the server may not know one that was never called."""
        engine = await self._engine()
        try:
            return await work(engine)
        except Undeclared:
            if name not in self._settings:
                known = {one.name for one in await upstreams.views(engine)}
                known |= self._settings.keys() - {TOTALS}
                raise ConfigError(
                    f"upstream must be one that a program has declared, got {shown(name)}; "
                    f"{nearest(name, sorted(known))}",
                    field="upstream",
                    value=name,
                ) from None
        await resilience.declare(engine, {name: self._settings[name]})
        return await work(engine)
