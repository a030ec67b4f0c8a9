"""Small scripts for tests of the wire."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Lua:
    name: str
    body: str

    @property
    def function(self) -> str:
        return f"test_{self.name}"

    @property
    def source(self) -> str:
        return self.body

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    @property
    def library(self) -> str:
        return (
            f"#!lua name={self.function}\n"
            f"redis.register_function('{self.function}', function(KEYS, ARGV) {self.body} end)"
        )


ECHO = Lua("echo", "return {KEYS[1], ARGV[1], #ARGV}")
COUNT = Lua("count", "return redis.call('INCR', KEYS[1])")
READ = Lua("read", "return redis.call('GET', KEYS[1])")
