"""One CampoTech: its queues, its database, its services, and what its jobs do.

Everything is declared when it is made, and nothing is connected. Workers serve it, the HTTP API
enqueues into it, and a test may have several.
"""

from __future__ import annotations

from apps.campotech import registry
from apps.campotech.database import tables
from apps.campotech.pace import Pace
from apps.campotech.security import Vault
from apps.campotech.settings import Settings
from apps.campotech.sync.apply import Sync
from faena import DeadLetters, Faena
from faena.pg import Archive, History, Postgres


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
                retry_after=self.pace.of("1h"),
                most_retries=2,
                alert_new=10,
                alert_age=self.pace.of("24h"),
            ),
        )
        self.queues = registry.declare(self.app, self.pace, settings.flags)
        self.pg = Postgres(self.app, settings.database_url, history=History(keep="2y"))
        self.rollups = tables.declare(self.pg, Archive())
        self.sync = Sync(self)
