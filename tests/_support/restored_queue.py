"""A populated queue that is put back as it was before every example, and read as a whole."""

from __future__ import annotations

import asyncio
from typing import Any

import redis

from faena.engine import Address, Wire
from faena.engine.keys import Keys
from faena.engine.script_library import load
from tests._support.rig import Rig
from tests._support.valid_calls import Args, populate_all
from tests._support.valkey import Server

_READ = """
local function sorted(flat, step)
  local rows = {}
  for i = 1, #flat, step do rows[#rows + 1] = { unpack(flat, i, i + step - 1) } end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  return rows
end
local readers = {
  string = function(name) return redis.call('GET', name) end,
  hash = function(name) return sorted(redis.call('HGETALL', name), 2) end,
  zset = function(name) return sorted(redis.call('ZRANGE', name, 0, -1, 'WITHSCORES'), 2) end,
  set = function(name) return sorted(redis.call('SMEMBERS', name), 1) end,
  list = function(name) return redis.call('LRANGE', name, 0, -1) end,
  stream = function(name) return redis.call('XRANGE', name, '-', '+') end,
}
local names, found = redis.call('KEYS', '*'), {}
table.sort(names)
for i, name in ipairs(names) do
  local kind = redis.call('TYPE', name).ok
  found[i] = { name, kind, redis.call('PEXPIRETIME', name), readers[kind](name) }
end
return found
"""
_LATER_MS = 4_000_000_000_000
_RESTORE = """
redis.call('FLUSHALL')
for i = 1, #ARGV, 3 do redis.call('RESTORE', ARGV[i], ARGV[i + 1], ARGV[i + 2], 'ABSTTL') end
"""


class RestoredQueue:
    """One queue, `q`, with something of everything."""

    def __init__(self, server: Server) -> None:
        self.client = redis.Redis.from_url(server.url)
        asyncio.run(self._populate(server))
        self.client.function_load(load("look").library, replace=True)
        self.key = Keys("restored", "q")
        self._image: list[Any] = []
        for name in self.client.scan_iter(count=1000):
            if int(self.client.pttl(name)) > 0:  # pyright: ignore[reportArgumentType] - not awaited
                self.client.pexpireat(name, _LATER_MS)  # none expires in the middle of an example
            expires = int(self.client.pexpiretime(name))  # pyright: ignore[reportArgumentType] - not awaited
            self._image += [name, max(expires, 0), self.client.dump(name)]
        self.contents = self.read()

    @staticmethod
    async def _populate(server: Server) -> None:
        wire = Wire(Address.parse(server.url))
        await populate_all(Rig(wire, "restored"))
        await wire.close()
        for _ in range(3):  # its transports end in the next turns of the loop
            await asyncio.sleep(0)

    def reset(self) -> None:
        """As it was populated."""
        self.client.eval(_RESTORE, 0, *self._image)

    def read(self) -> list[Any]:
        """Every key: name, type, when it expires, content."""
        return self.client.eval(_READ, 0)  # pyright: ignore[reportReturnType] - the type is that of the script

    def call(self, name: str, args: Args, *, alone: bool = False) -> Any:
        """Call a script; raises redis.ResponseError when it fails."""
        script = load(name)
        if alone:
            return self.client.eval(script.source, 1, self.key.prefix, *args)
        return self.client.fcall(script.function, 1, self.key.prefix, *args)

    def close(self) -> None:
        self.client.flushall()
        self.client.close()
