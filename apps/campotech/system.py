"""One CampoTech: its queues, its database, its services, and what its jobs do.

Everything is declared when it is made, and nothing is connected. Workers serve it, the HTTP API
enqueues into it, and a test may have several.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self

import httpx

from apps.campotech import alerting, registry
from apps.campotech.database import tables
from apps.campotech.dispatch import Dispatcher
from apps.campotech.invoicing.bill import Billing
from apps.campotech.invoicing.generate import Generating
from apps.campotech.invoicing.issue import Issuing
from apps.campotech.invoicing.pdf import Documents
from apps.campotech.invoicing.pending import Pending
from apps.campotech.invoicing.tickets import Certificates, PostgresTickets
from apps.campotech.jobs.complete import Completing
from apps.campotech.messaging.channel import Channels
from apps.campotech.messaging.delivery import Delivery
from apps.campotech.messaging.escalation import People
from apps.campotech.messaging.inbound import Inbound
from apps.campotech.messaging.notify import Notifying
from apps.campotech.messaging.recording import Recordings
from apps.campotech.messaging.reminder import Reminders
from apps.campotech.messaging.respond import Answering
from apps.campotech.messaging.sender import Sender
from apps.campotech.messaging.visit_news import VisitNews
from apps.campotech.messaging.voice import Voice
from apps.campotech.pace import Pace
from apps.campotech.payments.link import Links
from apps.campotech.payments.take import Payments
from apps.campotech.security import Vault
from apps.campotech.settings import Settings
from apps.campotech.sync.apply import Sync
from apps.campotech.upkeep import timetable
from apps.campotech.upkeep.analytics import Statistics
from apps.campotech.upkeep.archiving import Archiving
from apps.campotech.upkeep.cleanup import Cleaning
from apps.campotech.upkeep.costs import Costs
from apps.campotech.upkeep.figures import Figures
from apps.campotech.upkeep.reconciliation import Reconciling
from apps.campotech.upkeep.scheduled import Scheduled
from apps.campotech.upstreams import Features, Upstreams
from apps.providers import afip, mercadopago, openai, outcome, storage
from apps.providers.openai.upstream import BUDGETS as OPENAI_BUDGETS
from faena import Budget, DeadLetters, Faena
from faena.errors import StoreUnavailable
from faena.pg import Archive, History, Postgres

_TRANSIENT: Final = (
    outcome.Retryable,
    outcome.RateLimited,
    outcome.UnknownOutcome,
    StoreUnavailable,
)
"""Jobs that have died of them are tried again later: a service, or the database, was out."""
_CONNECTIONS: Final = httpx.Limits(max_connections=200, max_keepalive_connections=50)


class System:
    """What all parts share."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.pace = settings, Pace(settings.speed)
        self.vault = Vault(settings.secrets)
        self.app = Faena(
            "campotech",
            settings.broker_url,
            namespace=settings.namespace,
            directory=settings.directory,
            dead_letters=DeadLetters(
                errors=_TRANSIENT,
                retry_after=self.pace.of("1h"),
                most_retries=2,
                alert_new=10,
                alert_age=self.pace.of("24h"),
            ),
            alerts=alerting.declared(settings.alert_channels, self.pace),
        )
        self.queues = registry.declare(self.app, self.pace, settings.flags)
        self.pg = Postgres(
            self.app,
            settings.database_url,
            replica_url=settings.replica_url,
            history=History(keep="2y"),
        )
        self.rollups = tables.declare(self.pg, Archive())
        self.pg.retrieval(secrets=settings.secrets, lifetime="1h", queue="cleanup")
        self.upstreams = Upstreams.declare(self.app, self.pace, **_budgets(settings))
        self.features = Features.declare(self.app, self.upstreams)
        self.http = httpx.AsyncClient(limits=_CONNECTIONS, trust_env=False)
        self.storage = storage.Client(settings.storage)
        self._declare_tasks()

    def _declare_tasks(self) -> None:
        settings, upstreams = self.settings, self.upstreams
        self.sync = Sync(self)
        self.documents = Documents(self, self.storage)
        self.afip = self._afip()
        self.issuing = Issuing(self, self.afip, upstreams.afip)
        self.billing, self.pending = Billing(self), Pending(self)
        self.generating = Generating(self)
        self.mercadopago = mercadopago.Client(settings.mercadopago, self.http)
        self.payments = Payments(self, self.mercadopago, upstreams.mercadopago)
        self.links = Links(self, self.mercadopago, upstreams.mercadopago)
        self.sender = Sender(self, settings.whatsapp, self.http, upstreams.whatsapp)
        self.delivery = Delivery(self, Channels(upstreams, settings, self.http))
        self.people = People(self)
        model = openai.Client(settings.openai, self.http)
        self.answering = Answering(self, model, upstreams.openai)
        self.voice = Voice(self, model, upstreams.openai, self.http)
        self.recordings = Recordings(self, model, upstreams.openai)
        self.inbound = Inbound(self)
        self.notifying, self.reminders = Notifying(self), Reminders(self)
        self.visit_news = VisitNews(self)
        self.statistics, self.figures = Statistics(self), Figures(self)
        self.cleaning, self.archiving = Cleaning(self, self.storage), Archiving(self)
        self.reconciling, self.scheduled = Reconciling(self), Scheduled(self)
        timetable.declare(self)
        self.costs = Costs(self)
        self.dispatch = Dispatcher(self)
        self.completing = Completing(self)

    def _afip(self) -> afip.Client:
        given = self.settings.afip
        own = None
        if given.certificate_pem is not None and given.key_pem is not None:
            own = afip.Credentials(certificate_pem=given.certificate_pem, key_pem=given.key_pem)
        certificates = Certificates(self.pg, self.vault, own)
        return afip.Client(
            given, self.http, credentials=certificates.find, tickets=PostgresTickets(self.pg)
        )

    async def close(self) -> None:
        """Close all connections; a later call would open them again."""
        await self.http.aclose()
        await self.pg.close()
        await self.app.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def _budgets(settings: Settings) -> dict[str, Any]:
    """Those of OpenAI that differ from the provider's own."""
    if settings.ai_budget is None:
        return {}
    _, month = OPENAI_BUDGETS
    day = Budget(settings.ai_budget, per="day", soft=0.8, thresholds=[50, 80, 100])
    return {"budgets": (day, month)}
