--- Begin a group, or say how many members it has.
-- states   none
-- keys     group hashes · groups, groups_done, pending_sends zsets
--@args     id, verb, total?, field value...
--          verb open (with fields) | seal (with a total)
-- returns  OK · unknown · the total it was sealed with: of `open`, which then changes nothing, and of `seal` when
--          that was another
-- A group that is never sealed is gone after a month.
--@include now, group_record, keys
local OPEN_TTL_S = 30 * 86400

local function open_group()
  local sealed = call('HGET', group_key(id), 'total')
  if sealed then
    return sealed
  end
  if call('HSETNX', group_key(id), 'created', whole(now)) == 1 then
    call('EXPIRE', group_key(id), OPEN_TTL_S)
    call('ZADD', key('groups'), now, id)
    call('ZREMRANGEBYSCORE', key('groups'), '-inf', now - OPEN_TTL_S * 1000000)
  end
  if #ARGV >= first_field then
    call('HSET', group_key(id), unpack(ARGV, first_field))
  end
  return 'OK'
end

local function seal_group()
  if call('EXISTS', group_key(id)) == 0 then
    return 'unknown'
  end
  call('HSETNX', group_key(id), 'total', total)
  local known = call('HGET', group_key(id), 'total')
  settle_group(id, now)
  return known == total and 'OK' or known
end

return verb == 'open' and open_group() or seal_group()
