--- Hashes of which calls read and write many fields at once, by lane or by id.
--@exports LONG, names_in, spread_out, spread_out_set
local LONG = ('.'):rep(64)   -- a value longer than this makes a hash a table

local function names_in(map)
  local names, number = {}, 0
  for name in pairs(map) do
    number = number + 1
    names[number] = name
  end
  return names
end

--- A small hash of short values is a listpack, where finding each of a batch of fields is O(n). A value
-- that is long, for a moment, makes a table of it for good; done once, when it comes to 32.
local function spread_out(hash, added)
  local size = added > 0 and call('HLEN', hash) or 0
  if size >= 32 and size - added < 32 then
    call('HSET', hash, 'z', LONG .. LONG)
    call('HDEL', hash, 'z')
  end
end

--- The same for a sorted set.
local function spread_out_set(set, added)
  local size = added > 0 and call('ZCARD', set) or 0
  if size >= 32 and size - added < 32 then
    call('ZADD', set, 0, LONG .. LONG)
    call('ZREM', set, LONG .. LONG)
  end
end
