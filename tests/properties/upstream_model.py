"""Breakers and limits of upstreams in plain Python: what `admit` must answer, call by call."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from faena import Limit
from faena.engine.calls.resilience import (
    BAD,
    VOID,
    Admitted,
    Ask,
    Grant,
    Report,
    Turned,
    call_within_us,
)
from faena.resilience.upstream_options import UpstreamOptions

BUCKETS, DOUBLINGS, PLENTY, FINE, LOOK_AGAIN_US = 10, 10, 100, 100, 1_000_000
ANY: Final = 10**12
"""Room without a bound."""


@dataclass
class Scope:
    """A breaker."""

    name: str
    state: str = "closed"
    until: int = 0
    openings: int = 0
    ended: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Bucket, calls, failed, slow."""
    probes: dict[str, int] = field(default_factory=dict)
    passed: int = 0
    since: int = 0
    permitted: int = 0
    silent_until: int = 0
    latest: list[list[int]] = field(default_factory=list)
    """Calls and failed ones, in sums of a tenth of the volume, oldest first."""


class Model:
    """Everything that is known of some upstreams."""

    def __init__(self) -> None:
        self.options: dict[str, UpstreamOptions] = {}
        self.scopes: dict[str, Scope] = {}
        self.windows: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        """Upstream or its tenant, and length → instant and number of calls."""
        self.panics: dict[str, int] = {}
        """Upstream → until when; 0 for until it is ended."""
        self.turned: list[Turned] = []
        self.taken: Counter[str] = Counter()

    def admit(self, reports: Sequence[Report], asks: Sequence[Ask], now: int) -> Admitted:
        self.turned, self.taken = [], Counter()
        for report in reports:
            self._learn(report, now)
        grants = [self._judge(ask, now) for ask in asks]
        for lane, number in self.taken.items():
            for limit in self._limits(lane):
                self._spend(lane, limit, number, now)
        named = {one.upstream for one in reports} | {one for ask in asks for one in ask.upstreams}
        self._panic(named, now)
        return Admitted(grants, self.turned)

    def sweep(self, now: int) -> dict[str, str]:
        """End what is over, although no call is made; the breakers that are not closed then."""
        self.turned = []
        for scope in self.scopes.values():
            if scope.state == "recovering":
                self._room_in_ramp(scope, scope.name.partition("/@")[0], now)
        self._panic({*self.options}, now)
        return {name: one.state for name, one in self.scopes.items() if one.state != "closed"}

    def scope(self, name: str, tenant: str) -> Scope:
        is_tenants = self.options[name].breaker.per == "tenant" and tenant
        key = f"{name}/@{tenant}" if is_tenants else name
        return self.scopes.setdefault(key, Scope(key))

    def is_in_panic(self, name: str, now: int) -> bool:
        return name in self.panics and (self.panics[name] == 0 or self.panics[name] > now)

    def _panic(self, named: set[str], now: int) -> None:
        """A breaker that opens again and again calls one; what is over is forgotten."""
        for name in named & self.panics.keys():
            if not self.is_in_panic(name, now):
                del self.panics[name]
        for name, options in self.options.items():
            opened = Turned(name, "", "open") in self.turned
            after = options.panic_after
            is_due = opened and after and self.scopes[name].openings % after == 0
            if is_due and not self.is_in_panic(name, now):
                self.panics[name] = 0

    def _become(self, scope: Scope, state: str) -> None:
        scope.state, scope.ended, scope.probes, scope.passed = state, [], {}, 0
        scope.latest = []
        name, _, tenant = scope.name.partition("/@")
        self.turned.append(Turned(name, tenant, state))

    def _open(self, scope: Scope, name: str, now: int) -> None:
        breaker = self.options[name].breaker
        scope.openings += 1
        scope.until = now + min(breaker.open_us * 2 ** (scope.openings - 1), breaker.longest_us)
        self._become(scope, "open")

    # -- reports -------------------------------------------------------------------------------

    def _learn(self, report: Report, now: int) -> None:
        scope = self.scope(report.upstream, report.tenant)
        for permit, how in zip(report.probes[::2], report.probes[1::2], strict=True):
            self._end_probe(scope, report.upstream, permit, how, now)
        self._count(scope, report, now)
        if report.wait_us:
            scope.silent_until = max(scope.silent_until, now + report.wait_us)

    def _end_probe(self, scope: Scope, name: str, permit: str, how: int, now: int) -> None:
        if scope.state != "half_open" or permit not in scope.probes:
            return
        del scope.probes[permit]
        if how == BAD:
            self._open(scope, name, now)
        elif how != VOID:
            scope.passed += 1
            if scope.passed >= self.options[name].breaker.probes:
                scope.since, scope.permitted = now, 0
                self._become(scope, "recovering")

    def _count(self, scope: Scope, report: Report, now: int) -> None:
        if not report.calls or scope.state in {"open", "half_open"}:
            return
        breaker = self.options[report.upstream].breaker
        bucket = math.floor(now / (breaker.window_us / BUCKETS))
        scope.ended.append((bucket, report.calls, report.failed, report.slow))
        scope.ended = [one for one in scope.ended if one[0] > bucket - BUCKETS]
        calls, failed, slow = (sum(one[i] for one in scope.ended) for i in (1, 2, 3))
        is_recovering = scope.state == "recovering"
        volume = min(breaker.probes, breaker.volume) if is_recovering else breaker.volume
        is_bad = failed > 0 and failed >= breaker.errors * calls
        is_slow = breaker.slow is not None and slow >= breaker.slow * calls
        is_out = self._is_outage(scope, report, volume, calls, max(0.9, breaker.errors))
        if is_out or (calls >= volume and (is_bad or is_slow)):
            self._open(scope, report.upstream, now)

    def _is_outage(
        self, scope: Scope, report: Report, volume: int, inside: int, share: float
    ) -> bool:
        """Whether nearly all of the latest calls have failed; `inside` are those of the window."""
        latest = scope.latest if inside > report.calls else []
        if latest and latest[-1][0] < volume / 10:
            latest[-1] = [latest[-1][0] + report.calls, latest[-1][1] + report.failed]
        else:
            latest.append([report.calls, report.failed])
        while len(latest) > 1:
            rest = sum(one[0] for one in latest[1:])
            if rest < volume and rest + latest[0][0] <= inside:
                break
            del latest[0]
        scope.latest = latest
        total, failed = (sum(one[i] for one in latest) for i in (0, 1))
        return total >= volume and failed >= share * total

    # -- asks ----------------------------------------------------------------------------------

    def _judge(self, ask: Ask, now: int) -> Grant:
        granted, said = self.room_for(ask, now)
        more = self._advance(ask, now) if granted == least(ask) else 0
        return self._grant(ask, granted, said, more, now)

    def room_for(self, ask: Ask, now: int) -> tuple[int, tuple[str, str, int]]:
        """How many calls breakers and limits let through; else which does not, why, until when."""
        granted, said = least(ask), ("", "", 0)
        for name in ask.upstreams:
            room, reason, again = self._room(name, ask.tenant, least(ask), now)
            if room < granted:
                granted, said = max(room, 0), (name, reason, again)
        return granted, said

    def _grant(
        self, ask: Ask, granted: int, said: tuple[str, str, int], more: int, now: int
    ) -> Grant:
        is_probe, granted = False, min(granted, ask.number)
        for name in ask.upstreams if granted + more else ():
            is_probe |= self._use(self.scope(name, ask.tenant), name, granted, ask.stem, now)
            for lane in self._lanes(name, ask.tenant):
                self.taken[lane] += granted + more
        name, reason, again = said
        return Grant(granted, is_probe, name, reason, max(0, again - now), more)

    def _room(self, name: str, tenant: str, number: int, now: int) -> tuple[int, str, int]:
        if self.is_in_panic(name, now):
            return 0, "panic", self.panics[name]
        room, reason, again = self._room_of_breaker(self.scope(name, tenant), name, now)
        if room >= number:
            room, reason, again = number, "", 0
        for lane in self._lanes(name, tenant):
            for limit in self._limits(lane):
                left, opens_at = self._room_in(lane, limit, now)
                if left < room:
                    room, again = max(0, left), opens_at
                    reason = "tenant_limit" if "/@" in lane else "limit"
        return room, reason, again

    def _room_of_breaker(self, scope: Scope, name: str, now: int) -> tuple[int, str, int]:
        if scope.silent_until > now:
            return 0, "rate_limited", scope.silent_until
        if scope.state == "open":
            if scope.until > now:
                return 0, "open", scope.until
            self._become(scope, "half_open")
        if scope.state == "half_open":
            return self._room_of_probes(scope, name, now)
        if scope.state == "recovering":
            return self._room_in_ramp(scope, name, now)
        return ANY, "", 0

    def _room_of_probes(self, scope: Scope, name: str, now: int) -> tuple[int, str, int]:
        scope.probes = {one: until for one, until in scope.probes.items() if until > now}
        missing = max(1, self.options[name].breaker.probes - scope.passed)
        again = min([now + LOOK_AGAIN_US, *scope.probes.values()])
        return missing - len(scope.probes), "probing", again

    def _room_in_ramp(self, scope: Scope, name: str, now: int) -> tuple[int, str, int]:
        breaker = self.options[name].breaker
        if now >= scope.since + breaker.ramp_us:
            scope.openings = 0
            self._become(scope, "closed")
            return ANY, "", 0
        doublings = DOUBLINGS * (now - scope.since) / breaker.ramp_us
        allowed = math.floor(breaker.probes * 2**doublings + 1e-8)
        next_one = math.log2((allowed + 1) / breaker.probes) / DOUBLINGS
        again = scope.since + math.ceil(breaker.ramp_us * next_one)
        return allowed - scope.permitted, "recovering", again

    def _use(self, scope: Scope, name: str, number: int, stem: str, now: int) -> bool:
        if scope.state == "half_open":
            until = now + self.options[name].settings()["probe_us"]
            scope.probes |= {f"{stem}:{i}": until for i in range(1, number + 1)}
            return True
        if scope.state == "recovering":
            scope.permitted += number
        return False

    # -- limits --------------------------------------------------------------------------------

    def _lanes(self, name: str, tenant: str) -> Iterable[str]:
        if self.options[name].limits:
            yield name
        if self.options[name].tenant_limits and tenant:
            yield f"{name}/@{tenant}"

    def _limits(self, lane: str) -> list[Limit]:
        name, _, tenant = lane.partition("/@")
        options = self.options[name]
        limits = options.tenant_limits if tenant else options.limits
        return [one for one in limits if isinstance(one, Limit)]

    def _inside(self, lane: str, limit: Limit, now: int) -> list[tuple[int, int]]:
        """What has not left a window, oldest first."""
        held = self.windows[lane, limit.per_us]
        return [*itertools.dropwhile(lambda one: one[0] <= now - limit.per_us, held)]

    def _room_in(self, lane: str, limit: Limit, now: int) -> tuple[int, int]:
        inside = self._inside(lane, limit, now)
        used = sum(number for _, number in inside)
        opens_at = (inside[0][0] if inside else now) + limit.per_us
        return max(0, limit.max - used) - self.taken[lane], opens_at

    def _advance(self, ask: Ask, now: int) -> int:
        advance = ask.advance
        for name in ask.upstreams:
            if self.scope(name, ask.tenant).state != "closed":
                return 0
            for lane in self._lanes(name, ask.tenant):
                for limit in self._limits(lane):
                    left = self._room_in(lane, limit, now)[0] - ask.number
                    advance = min(advance, left // PLENTY)
        return max(0, advance)

    def _spend(self, lane: str, limit: Limit, number: int, now: int) -> None:
        """In a large window, what comes in a hundredth of its length is one entry."""
        later = call_within_us(min(one.per_us for one in self._limits(lane)))
        held, at = self._inside(lane, limit, now), now + later
        width, instant = limit.per_us / FINE, at
        if held:
            last, before = held[-1]
            instant = max(last, at)
            if limit.max > FINE and math.floor(last / width) == math.floor(at / width):
                held, number = held[:-1], before + number
        self.windows[lane, limit.per_us] = [*held, (instant, number)]


def least(ask: Ask) -> int:
    """How many must be possible for some in advance: one, where only these are wanted."""
    return max(ask.number, 1)
