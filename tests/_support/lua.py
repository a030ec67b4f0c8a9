"""Small scripts for tests of the wire."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Lua:
    name: str
    source: str

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.source.encode()).hexdigest()


ECHO = Lua("echo", "return {KEYS[1], ARGV[1], #ARGV}")
COUNT = Lua("count", "return redis.call('INCR', KEYS[1])")
READ = Lua("read", "return redis.call('GET', KEYS[1])")
