"""What an app watches and whom it tells: its alerts, silences and channels."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from faena.deadletter.conditions import conditions
from faena.deadletter.queues import DeskQueues
from faena.deadletter.upkeep import read_numbers
from faena.engine.calls.alerts import AlertCalls, Change, Notice
from faena.engine.calls.upstreams import UpstreamView
from faena.errors import ConfigError, unknown_name
from faena.job import Job
from faena.options import Alerts, DeadLetters, Order, Retain
from faena.options.alerts import check_rule_name
from faena.options.fields import check_is
from faena.outcomes import Discard
from faena.queue import Queue
from faena.resilience.feature_views import FeatureView
from faena.retry import Retry
from faena.runtime.connections import Connection
from faena.task import Task
from faena.telemetry.alerts.delivery import deliver
from faena.telemetry.alerts.evaluator import Dead, Evaluator, Sources
from faena.telemetry.alerts.failure import Refused
from faena.telemetry.alerts.queue_readings import Watched
from faena.telemetry.alerts.sender import NoticeSender
from faena.telemetry.alerts.view import AlertsView, SilenceView, alerts_view
from faena.telemetry.snapshot import Snapshot
from faena.telemetry.snapshot_reader import SnapshotReader
from faena.telemetry_registry import TelemetryRegistry
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_keywords
from faena.values.names import check_label, check_reason
from faena.values.numbers import check_whole
from faena.worker.background_services import Service

QUEUE: Final = "alerts"
"""The queue of notices. It is watched by no rule: an alert about it could not arrive."""

_SILENCE_US: Final = 1_000_000
_HISTORY: Final = 1_000


class AlertRegistry(TelemetryRegistry):
    """The part of an app that watches it."""

    dead_letter_options: DeadLetters
    _desk_queues: DeskQueues

    def __init__(self, name: str, connection: Connection, on_fork: Callable[[], None]) -> None:
        super().__init__(name, connection, on_fork)
        self.alert_options: Alerts | None = None
        self._notices: Task[Notice, None] | None = None

    # -- what operators see and do ----------------------------------------------------------------

    async def alerts(self, *, history: int = 50) -> AlertsView:
        """Alerts that fire or are pending, silences, and the last changes; see docs/alerts.md."""
        most = check_whole("history", history, least=0, most=_HISTORY)
        return alerts_view(await (await self._alert_calls()).look(most))

    @known_keywords("silence")
    async def silence(
        self,
        rule: str | None = None,
        subject: str | None = None,
        *,
        lasting: Duration,
        reason: str,
        by: str = "operator",
    ) -> SilenceView:
        """Send no notices of some alerts for some time; states, events and history go on.

        `subject` is a queue of this app, an upstream, or what an alert under way is about. What
        still fires when the silence is over is told then.
        """
        if rule is not None:
            check_rule_name(rule)
        check_reason(reason)
        check_label("by", by)
        lasting_us = to_us("lasting", lasting, least_us=_SILENCE_US)
        calls = await self._alert_calls()
        if subject is not None:
            await self._check_subject(calls, subject)
        name = secrets.token_hex(4)
        said = {"rule": rule or "", "subject": subject or "", "reason": reason, "by": by}
        await calls.silence(name, lasting_us, **said)
        view = alerts_view(await calls.look(0))
        over = SilenceView(
            id=name,
            rule=rule,
            subject=subject,
            since=view.at - lasting_us,
            until=view.at,
            by=by,
            reason=reason,
        )
        return next((one for one in view.silences if one.id == name), over)

    async def unsilence(self, silence: str, *, by: str = "operator") -> None:
        """End a silence, by its id."""
        check_label("by", by)
        calls = await self._alert_calls()
        if not await calls.unsilence(check_label("silence", silence), by=by):
            known = (await calls.look(0)).silences
            raise unknown_name("silence", silence, known, field="silence", value=silence)

    async def test_channel(self, name: str) -> None:
        """Send a trial notice through a channel, from here; raises if it is not accepted."""
        channel = self._told_alerts().channel(name)
        now = (await (await self._alert_calls()).look(0)).now
        change = Change("firing", "test", self.name, "warning", now, "a trial: nothing is wrong")
        notice = Notice(name, "warning", now, [change])
        await deliver(self.name, f"test-{secrets.token_hex(8)}", notice, channel, os.environ)

    async def _check_subject(self, calls: AlertCalls, subject: str) -> None:
        under_way = {about.partition(" ")[2] for about in (await calls.look(0)).alerts}
        known = {*self.queues, *self.upstreams, *under_way, self.name}
        if subject not in known:
            raise unknown_name("subject", subject, known, field="subject", value=subject)

    async def _alert_calls(self) -> AlertCalls:
        return AlertCalls((await self.runtime()).engine)

    # -- declaring --------------------------------------------------------------------------------

    def _declare_alerts(self, options: Alerts | None) -> None:
        if options is None:
            return
        check_is("alerts", options, Alerts)
        self.alert_options = options
        self._notices = self._notice_task(self._notice_queue())

    def _notice_queue(self) -> Queue:
        """A channel is a tenant: its notices keep their order, and hold up no others."""
        return self.queue(
            QUEUE,
            order=Order.TENANT,
            concurrency=4,
            timeout="1m",
            retry=Retry.exponential(base="5s", cap="15m", attempts=40),
            retain=Retain(completed="7d", completed_count=None),
        )

    def _notice_task(self, queue: Queue) -> Task[Notice, None]:
        options = self._told_alerts()

        @queue.task(name="send_notice")
        async def send_notice(notice: Notice, job: Job) -> None:
            channel = options.channel(notice.channel)
            try:
                await deliver(self.name, job.id, notice, channel, os.environ)
            except Refused as error:
                raise Discard(str(error)) from None

        return send_notice

    def _told_alerts(self) -> Alerts:
        if self.alert_options is None:
            raise ConfigError(
                f"app {self.name} must have alerts=Alerts(…), got none", field="alerts"
            )
        return self.alert_options

    # -- workers ----------------------------------------------------------------------------------

    async def evaluator(self) -> Evaluator:
        """What judges alerts in a worker; also for a program that has no workers."""
        runtime = await self.runtime()
        engine = runtime.engine
        reader = SnapshotReader(engine, runtime.routers, self._own_upstreams, _no_features)

        async def dead(seen: Snapshot) -> Dead:
            watched = list(sources.watched)
            return await _dead(self._desk_queues, self.dead_letter_options, seen, watched)

        sources = Sources(
            app=self.name,
            watched=self._watched(),
            snapshot=lambda: reader.read([*sources.watched, QUEUE], has_tenants=False),
            dead=dead,
            queue=QUEUE,
            enqueue=self._enqueue_notice,
        )
        options = self._told_alerts()

        def calls(rule_set: str) -> AlertCalls:
            return AlertCalls(engine, rule_set, interval_us=options.interval_us)

        return Evaluator(calls, options, sources)

    async def _own_upstreams(self) -> Sequence[UpstreamView]:
        """A program without upstreams need not ask for those of others."""
        return await self.upstream_views() if self.upstreams else ()

    async def _alert_services(self, send: Callable[[], Awaitable[None]]) -> list[Service]:
        """`send` serves the queue of notices until it is empty."""
        if self._notices is None:
            return []
        evaluator, sender = await self.evaluator(), NoticeSender(send)
        evaluator.on_notices = sender.notify
        return [evaluator.run, sender.run]

    def _watched(self) -> Mapping[str, Watched]:
        own = (one for one in self.queues.values() if not one.is_remote and one.name != QUEUE)
        return {queue.name: _watched(queue) for queue in own}

    async def _enqueue_notice(self, name: str, notice: Notice) -> None:
        """The same id is the same job, also when another process has enqueued it."""
        if self._notices is not None:
            await self._notices.enqueue(notice, id=name, tenant=notice.channel)


async def _no_features() -> Sequence[FeatureView]:
    return ()


def _watched(queue: Queue) -> Watched:
    options = queue.options
    limits = (*options.limits, *options.tenant_limits, *options.key_limits)
    own = options.alerts.given if options.alerts else {}
    return Watched(own, max((limit.per_us for limit in limits), default=0))


async def _dead(
    desk_queues: DeskQueues, options: DeadLetters, seen: Snapshot, watched: list[str]
) -> Dead:
    """The desk is asked only about queues that ever had dead jobs."""
    had = [one.queue for one in seen.queues if one.totals.get("dead") or one.counts["dead"]]
    parts = {
        queue: await desk_queues.anywhere(queue, read_numbers) for queue in had if queue in watched
    }
    return {
        name: (one.value, (one.bound + 1, None), one.text)
        for name, one in conditions(options, parts).items()
    }
