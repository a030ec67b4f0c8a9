"""The data directory: private, ignored by git, and always reachable through a short address."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from faena.embedded.server_command import LOG
from faena.embedded.watcher import ALIAS, MEMBERS, SOCKET, TOKEN, WATCHER, open_lock
from faena.errors import ConfigError, StoreUnavailable

JOIN = "door.lock"  # its first name: older versions on the same directory must find it
# AF_UNIX takes 104 bytes on macOS and 108 on Linux, the closing zero included.
ADDRESS_MAX = 100
LOG_MAX = 1_000_000
POSTGRES = "postgres"
"""The folder of an embedded PostgreSQL beside the Valkey's files."""


class DataDirectory:
    """The paths of all files, with private permissions; starts and stops nothing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.join_lock = self.directory / JOIN
        self.members = self.directory / MEMBERS
        self.watcher = self.directory / WATCHER
        self.token = self.directory / TOKEN
        self.log = self.directory / LOG

    def prepare(self) -> None:
        """Create the directory, or check that faena created it; the join lock is created first.

        If two processes prepare at the same time, the second sees no file yet, or that lock.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._refuse_foreign()
            self.directory.chmod(self._mode())
            os.close(open_lock(self.join_lock))
            ignore = self.directory / ".gitignore"
            if not ignore.exists():
                _write(ignore, "*\n")
        except OSError as refused:
            raise ConfigError(
                f"the data directory must be a writable directory, got {self.directory}: {refused}",
                field="directory",
                value=str(self.directory),
            ) from refused

    def _mode(self) -> int:
        """Private. Root's PostgreSQL is run by another user, who has to pass to its files."""
        is_passed = os.geteuid() == 0 and (self.directory / POSTGRES).exists()
        return 0o711 if is_passed else 0o700

    def _refuse_foreign(self) -> None:
        names = {path.name for path in self.directory.iterdir()}
        if names and JOIN not in names:
            raise ConfigError(
                "the data directory must be empty or created by faena, "
                f"got {self.directory} with other files in it: choose another one",
                field="directory",
                value=str(self.directory),
            )

    def address(self) -> Path:
        """The path of the socket for clients; through the alias if it is too long."""
        direct = self.directory / SOCKET
        if len(os.fsencode(direct)) <= ADDRESS_MAX:
            return direct
        return self._alias() / SOCKET

    def url(self) -> str:
        return f"unix://{quote(str(self.address()))}"

    def _alias(self) -> Path:
        """A short link to the directory, in a private temporary directory whose path is stored.

        The caller holds the join lock. The watcher removes the link after the last member left.
        """
        record = self.directory / ALIAS
        link = Path(record.read_text()) / "data" if record.exists() else None
        if link is None or not self._is_ours(link):
            link = Path(tempfile.mkdtemp(prefix="faena-", dir=_short_place())) / "data"
            _write(record, str(link.parent))
            link.symlink_to(self.directory)
        return link

    def _is_ours(self, link: Path) -> bool:
        """Check the owner: another user may take the name of a removed temporary directory."""
        try:
            around = link.parent.lstat()
            leads_here = link.readlink() == self.directory
        except OSError:
            return False
        private = stat.S_ISDIR(around.st_mode) and stat.S_IMODE(around.st_mode) == 0o700
        return leads_here and private and around.st_uid == os.geteuid()

    def open_log(self) -> BinaryIO:
        """Open the log for appending; a log that is too long is renamed first.

        The server opens its log again for each line, so a rename is safe at any time.
        """
        if self.log.exists() and self.log.stat().st_size > LOG_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))
        self.log.touch(mode=0o600)
        return self.log.open("ab")

    def unavailable(self, got: str) -> StoreUnavailable:
        """The error for a server that does not answer, with its last log line and the next step."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        last = f" ({lines[-1].strip()})" if lines else ""
        return StoreUnavailable(
            f"the embedded valkey must answer, got {got}{last}: "
            f"read {self.log}, then try again or set FAENA_URL",
            op="join",
        )


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _short_place() -> str:
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) < ADDRESS_MAX // 2 else "/tmp"  # noqa: S108  mkdtemp is private anywhere
