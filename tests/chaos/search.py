"""The model searches and the tests of faults, all of their examples, as far as the time goes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TESTS = ("tests/properties", "tests/scripts/test_any_call.py", "tests/faults")
_RESULT = re.compile(rb"(PASSED|FAILED|ERROR) (tests/\S+)")


class Search:
    """One run of pytest, stopped when its time is over."""

    def __init__(self, seed: int, directory: Path) -> None:
        self._seed = seed
        self._log = directory / "search.log"
        self._process: asyncio.subprocess.Process | None = None
        self.ended = 0
        self.failed: list[str] = []

    @property
    def words(self) -> str:
        """How it stands."""
        return f"{self.ended} searches ended, {len(self.failed)} failed"

    async def run(self, seconds: float) -> None:
        """Returns when all have ended, or the time is over."""
        command = [sys.executable, "-u", "-m", "pytest", *_TESTS, "-vv", "-n", "2", "--timeout=0"]
        self._process = await asyncio.create_subprocess_exec(
            *command,
            *("-p", "tests.chaos.telling", "-p", "no:cacheprovider"),
            f"--randomly-seed={self._seed}",
            cwd=ROOT,
            env=os.environ | self._depth(seconds),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(seconds):
                await self._read(self._process)
        except TimeoutError:
            pass
        finally:
            self.stop()
            await self._process.wait()

    def _depth(self, seconds: float) -> dict[str, str]:
        """The longer, the deeper: in a short run all are tried a little, in a long one wholly."""
        examples = max(10, round(seconds / 2))
        words = {"SEARCH": "full", "SEED": self._seed, "EXAMPLES": examples}
        return {f"FAENA_{name}": str(value) for name, value in words.items()}

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        with self._log.open("wb") as log:
            async for line in process.stdout:
                log.write(line)
                if found := _RESULT.search(line):
                    self.ended += 1
                    if found[1] != b"PASSED":
                        self.failed.append(found[2].decode())
        code = await process.wait()
        if code not in {0, 1, -signal.SIGKILL}:
            self.failed.append(f"pytest itself, with exit code {code}: see {self._log}")

    def stop(self) -> None:
        """End it with everything it started; servers end with their tests."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
