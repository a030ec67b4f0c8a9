"""Brings a database to the newest release: Faena's own schema, then CampoTech's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from faena.pg import Postgres
from faena.pg.migration import migrate

_HERE: Final = Path(__file__).parent
_LOCK: Final = 7_305_981_224


async def upgrade(pg: Postgres) -> None:
    """Apply what is missing, one process at a time, and make partitions ahead."""
    await migrate(pg)
    await asyncio.to_thread(_upgrade, await pg.url())
    await pg.ensure_partitions()


def _upgrade(url: str) -> None:
    engine = create_engine(
        url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool
    )
    with engine.begin() as connection:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        config = Config()
        config.set_main_option("script_location", str(_HERE))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
