"""PostgreSQL beside the broker: an outbox, effects that happen once, history, partitions, archives.

    from faena.pg import Postgres

    pg = Postgres(app)      # FAENA_PG_URL, else a PostgreSQL of its own under .faena/

Only this package speaks PostgreSQL. It uses the app through its public API; jobs that do not need
PostgreSQL run whether it answers or not.
"""

from faena.pg.conversion.conversion import Conversion
from faena.pg.outbox import OutboxView
from faena.pg.partition.table import PartitionedTable
from faena.pg.partition.view import PartitionView, TableView
from faena.pg.postgres import Connection, Postgres

__all__ = [
    "Connection",
    "Conversion",
    "OutboxView",
    "PartitionView",
    "PartitionedTable",
    "Postgres",
    "TableView",
]
