"""Debian's real Prometheus and promtool, installed where they are missing and that is possible.

    with Prometheus(directory, targets=[…], rules=…) as prometheus:
        prometheus.query("up")

Where they cannot be installed, tests that need them are skipped, unless FAENA_REQUIRED names them.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests._support import debian
from tests._support.eventually import PATIENCE_S
from tests._support.valkey import free_port


def needed() -> None:
    """Skip the test where there is no Prometheus, or fail it if it must not be skipped."""
    debian.needed("prometheus", "prometheus", "promtool")


def promtool(*words: str) -> None:
    """Run it; what it finds fails the test."""
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus:
    """One Prometheus on a free port of loopback, which scrapes once a second."""

    def __init__(self, directory: Path, *, targets: dict[str, str], rules: Path) -> None:
        """`targets` are addresses of pages by their names."""
        self._directory = directory
        self.port = free_port()
        self._settings = directory / "prometheus.yml"
        self._settings.write_text(json.dumps(_settings(targets, rules)))
        self._process: subprocess.Popen[bytes] | None = None

    def query(self, text: str) -> list[Any]:
        """The samples of a query, which must be one."""
        told = self.get("query", query=text)
        assert told["status"] == "success", f"{text}: {told}"
        return told["data"]["result"]

    def get(self, path: str, **words: str) -> Any:
        """An answer of its API, errors included."""
        asked = urllib.parse.urlencode(words)
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{asked}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return json.loads(error.read())

    def __enter__(self) -> Self:
        log = self._directory / "prometheus.log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={self._settings}",
                    f"--storage.tsdb.path={self._directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--enable-feature=exemplar-storage",
                ],
                stdout=out,
                stderr=out,
            )
        try:
            self._await_ready(log)
        except BaseException:
            self._stop()
            raise
        return self

    def _await_ready(self, log: Path) -> None:
        until = time.monotonic() + PATIENCE_S
        while True:
            assert self._process is not None
            assert self._process.poll() is None, log.read_text()[-2000:]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                    return
            except OSError:
                assert time.monotonic() < until, log.read_text()[-2000:]
                time.sleep(0.05)

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            finally:
                process.kill()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()


def _settings(targets: dict[str, str], rules: Path) -> dict[str, Any]:
    scraped = [
        {"job_name": name, "static_configs": [{"targets": [address]}]}
        for name, address in targets.items()
    ]
    often = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    return {"global": often, "rule_files": [str(rules)], "scrape_configs": scraped}
