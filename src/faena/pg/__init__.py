"""PostgreSQL beside the broker: an outbox, effects that happen once, history, partitions, archives.

    from faena.pg import Postgres

    pg = Postgres(app)      # FAENA_PG_URL, else a PostgreSQL of its own under .faena/

Only this package speaks PostgreSQL. It uses the app through its public API; jobs that do not need
PostgreSQL run whether it answers or not.
"""

from faena.pg.archive.policy import Archive, Expired, Policy
from faena.pg.archive.store import Bucket
from faena.pg.archive.term import FOREVER
from faena.pg.archive.view import ArchiveView, LeavingView, RetentionView
from faena.pg.conversion.conversion import Conversion
from faena.pg.erasure.erasures import Erasures
from faena.pg.erasure.option import Erasure
from faena.pg.erasure.view import ErasurePlan, ErasureView
from faena.pg.history.history import JobHistory
from faena.pg.history.option import History
from faena.pg.history.view import HistoryView, PastJob, PastPage, TaskStatistics
from faena.pg.outbox import OutboxView
from faena.pg.partition.table import PartitionedTable
from faena.pg.partition.view import PartitionView, TableView
from faena.pg.pool import Connection, ReadConnection, SyncConnection
from faena.pg.postgres import Postgres
from faena.pg.replica import ReplicaView
from faena.pg.retrieval.link import LinkExpired, LinkRefused
from faena.pg.retrieval.option import Retrieval
from faena.pg.retrieval.retrievals import Retrievals
from faena.pg.retrieval.view import RetrievalView
from faena.pg.rollup.rollup import Rollup
from faena.pg.rollup.view import RollupProgress, RollupView
from faena.pg.sizing import ConnectionsView

__all__ = [
    "FOREVER",
    "Archive",
    "ArchiveView",
    "Bucket",
    "Connection",
    "ConnectionsView",
    "Conversion",
    "Erasure",
    "ErasurePlan",
    "ErasureView",
    "Erasures",
    "Expired",
    "History",
    "HistoryView",
    "JobHistory",
    "LeavingView",
    "LinkExpired",
    "LinkRefused",
    "OutboxView",
    "PartitionView",
    "PartitionedTable",
    "PastJob",
    "PastPage",
    "Policy",
    "Postgres",
    "ReadConnection",
    "ReplicaView",
    "RetentionView",
    "Retrieval",
    "RetrievalView",
    "Retrievals",
    "Rollup",
    "RollupProgress",
    "RollupView",
    "SyncConnection",
    "TableView",
    "TaskStatistics",
]
