--- Begin a group, or say how many members it has.
-- states   none
-- keys     group hashes · groups, pending_sends zsets
-- args     now · group · open · (field · value) …  |  seal · total
-- returns  OK · unknown · the total it was sealed with: of `open`, which then changes nothing, and of `seal` when
--          that was another
-- A group that is never sealed is gone after a month.
--@include now, group, key
local OPEN_TTL_S = 30 * 86400
local now, id, verb = now_us(), ARGV[2], ARGV[3]

local function open_group()
  local total = call('HGET', group_key(id), 'total')
  if total then
    return total
  end
  if call('HSETNX', group_key(id), 'created', whole(now)) == 1 then
    call('EXPIRE', group_key(id), OPEN_TTL_S)
    call('ZADD', key('groups'), now, id)
    call('ZREMRANGEBYSCORE', key('groups'), '-inf', now - OPEN_TTL_S * 1000000)
  end
  if #ARGV > 3 then
    call('HSET', group_key(id), unpack(ARGV, 4))
  end
  return 'OK'
end

local function seal_group()
  if call('EXISTS', group_key(id)) == 0 then
    return 'unknown'
  end
  call('HSETNX', group_key(id), 'total', ARGV[4])
  local total = call('HGET', group_key(id), 'total')
  settle_group(id, now)
  return total == ARGV[4] and 'OK' or total
end

return verb == 'open' and open_group() or seal_group()
