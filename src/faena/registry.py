"""What a program declares: its queues, the remote queues it uses, and its worker pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Unpack, cast

from faena.errors import ConfigError, UnknownQueue, as_text, nearest, shown
from faena.inspection.past import PastReader, RowReader
from faena.options import QueueOptions, build
from faena.options.queue import check_learning
from faena.pool import Pool
from faena.queue import Queue, QueueFields
from faena.remote import RemoteQueue
from faena.runtime.connected_app import ConnectedApp
from faena.runtime.connections import Connection
from faena.values.keywords import known_keywords
from faena.values.names import check_name

if TYPE_CHECKING:
    from faena.app import Faena


class _Queues(dict[str, Queue]):
    """The queues of an app by name; the error for an unknown name suggests the nearest one."""

    def __init__(self, app: str) -> None:
        super().__init__()
        self._app = app

    def __missing__(self, name: str) -> NoReturn:
        hint = nearest(name, self)
        raise UnknownQueue(
            f"no queue {shown(name)} in app {self._app}; {hint}", field="queue", value=name
        )


class Registry(ConnectedApp):
    """The queues and pools of an app, by name."""

    def __init__(self, name: str, connection: Connection, on_fork: Callable[[], None]) -> None:
        super().__init__(connection, on_fork)
        self.name = name
        self.queues: dict[str, Queue] = _Queues(name)
        self.pools: dict[str, Pool] = {}
        self.attachments: dict[type[Any], Any] = {}
        """What extends this app, by its class, so that commands find it: its `Postgres`."""
        self._history: tuple[Sequence[str] | None, Mapping[str, int | None]] = (None, {})

    def queue(self, name: str, **options: Unpack[QueueFields]) -> Queue:
        """Declare a queue; `QueueOptions` documents the options."""
        self._refuse_second(name)
        checked = check_learning(build(QueueOptions, "queue", options))
        self.queues[name] = queue = Queue(cast("Faena", self), name, checked)
        self._options[name] = checked
        self._keep_history_of(queue)
        return queue

    def keep_history(
        self, queues: Sequence[str] | None, settings: Mapping[str, int | None], reader: PastReader
    ) -> None:
        """Have the broker keep the ends of jobs for a reader outside; None: of all queues.

        What `reader` has is shown with the jobs that the broker has.
        """
        self._history = (queues, settings)
        self._links.connection.past.reader = reader
        for queue in self.queues.values():
            self._keep_history_of(queue)

    def read_rows(self, reader: RowReader) -> None:
        """Have `explain` ask a database for jobs that it has not sent to the broker."""
        self._links.connection.past.rows = reader

    def _keep_history_of(self, queue: Queue) -> None:
        names, settings = self._history
        if settings and not queue.is_remote and (names is None or queue.name in names):
            queue.options.history.update(settings)

    def remote_queue(self, name: str) -> RemoteQueue:
        """A queue that another program declares and serves, to enqueue its tasks from here.

        Unlike `app.queue`, this writes no settings. A second call returns the same queue.
        """
        known = self.queues.get(check_name("queue", name))
        if isinstance(known, RemoteQueue):
            return known
        self._refuse_second(name)
        self.queues[name] = queue = RemoteQueue(cast("Faena", self), name)
        self._options[name] = None
        return queue

    def _refuse_second(self, name: str) -> None:
        if check_name("queue", name) in self.queues:
            raise ConfigError(
                f"queue {name!r} is declared twice: use app.queues[{name!r}], or another name",
                field="queue",
                value=name,
            )

    def withdraw(self, queue: Queue) -> None:
        """Remove a queue that was declared a moment ago."""
        del self.queues[queue.name], self._options[queue.name]

    @known_keywords("pool")
    def pool(
        self,
        name: str,
        queues: Iterable[Queue | str],
        *,
        instances: int = 1,
        concurrency: int | None = None,
        memory: str | None = None,
        serves: str = "all",
    ) -> Pool:
        """Declare a worker pool: its queues, the number and memory of its processes, and whether
        they serve all shards, the "shared" ones, or those "dedicated" to one tenant.
        """
        names = tuple(queue.name for queue in self.served_here(queues))
        if check_name("pool", name) in self.pools:
            raise ConfigError(
                f"pool {name!r} is declared twice: give one of the two another name",
                field="pool",
                value=name,
            )
        self.pools[name] = Pool(
            name=name,
            queues=names,
            instances=instances,
            concurrency=concurrency,
            memory=memory,
            serves=serves,
        )
        return self.pools[name]

    def known(self, queue: Queue | str) -> Queue:
        """A queue of this app, given as itself or by its name."""
        name = queue.name if isinstance(queue, Queue) else as_text(queue)
        known = self.queues[name]
        if isinstance(queue, Queue) and queue is not known:
            raise ConfigError(
                f"no queue {shown(name)} in app {self.name}; {nearest(name, self.queues)}",
                field="queue",
                value=name,
            )
        return known

    def served_here(self, queues: Any) -> list[Queue]:
        """The given queues, if a worker of this app may serve them."""
        if isinstance(queues, str) or not isinstance(queues, Iterable):
            raise ConfigError(
                f"queues must be a list of queues or their names, got {shown(queues)}",
                field="queues",
                value=queues,
            )
        known = [self.known(queue) for queue in queues]
        for queue in known:
            if queue.is_remote:
                raise ConfigError(
                    f"queue {queue.name} cannot be served here: another program declares it and "
                    f"has its handlers; start a worker of that program",
                    field="queues",
                    value=queue.name,
                )
        return known
