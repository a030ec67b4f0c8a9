--- Hashes of which calls read and write many fields at once, by lane or by id, must not be listpacks: there finding
-- each field is O(n). A small hash of values of up to 64 bytes is one.
--@exports PADDING, leave_listpack, leave_listpack_set
local PADDING = ('.'):rep(64)   -- a value with this is long enough

--- A value that is long, for a moment, makes a table of a hash for good; done once, when it comes to 32.
local function leave_listpack(hash, added)
  local size = added > 0 and call('HLEN', hash) or 0
  if size >= 32 and size - added < 32 then
    call('HSET', hash, 'z', PADDING .. PADDING)
    call('HDEL', hash, 'z')
  end
end

--- The same for a sorted set.
local function leave_listpack_set(set, added)
  local size = added > 0 and call('ZCARD', set) or 0
  if size >= 32 and size - added < 32 then
    call('ZADD', set, 0, PADDING .. PADDING)
    call('ZREM', set, PADDING .. PADDING)
  end
end
