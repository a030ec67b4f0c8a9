--- Decide in which shards a queue lives, at its first one.
-- states   none
-- keys     shards, totals hashes · retired, retired_messages, retired_stats zsets
--@args     verb, epoch, change?, by?, number?, name...
--          begin, epoch, change, by | publish, epoch | finish, epoch, names of shards that are retired | restore,
--          epoch, number of shards, names of lanes, or `edited` | reset, 0 | count, epoch, shard and its totals, packed
-- returns  the whole of `shards` as name, value …
-- refuses  STALE (another call was faster: the answer is the table as it is)
-- A change is `shards <n>`, `own <lane>` or `shared <lane>`. It is announced, then published under
-- the next epoch, then jobs move, then it is finished; `before` keeps what the shards were. A table
-- of a later epoch than the server's is restored by any program that knows it: the server has lost data. What a
-- shard that is retired has written of its minutes outlives it: `retired` names it for as long as shares are kept,
-- `retired_stats` as long as statistics are. Its totals become this shard's when the change is finished. Messages of
-- one may be fetched late: `retired_messages` names it until it is empty. A number that an operator has asked for
-- is `edited`: code does not change it until it is reset. `moved` is when lanes have moved last.
--@flags allow-oom
--@arrivals
--@include now, keys, minutes
local shards = key('shards')
local phase = call('HGET', shards, 'phase')
local is_current = (call('HGET', shards, 'epoch') or '0') == epoch

local function apply(change)
  local kind, what = string.match(change, '^(%S+) (%S+)$')
  call('HSET', shards, 'before', call('HGET', shards, 'shards') or '1')
  if kind == 'shards' then
    call('HSET', shards, 'shards', what)
  elseif kind == 'own' then
    call('HSET', shards, what, '1')
  else
    call('HDEL', shards, what)
  end
end

local RETIRED_TTL_S = 3600   -- as long as shares are kept
local MESSAGES_TTL_S = 7 * 86400
local STATS_TTL_S = 30 * 86400

local function note_retired(list, ttl_s)
  call('ZREMRANGEBYSCORE', list, '-inf', now - ttl_s * 1000000)
  for i = first_name, #ARGV do
    call('ZADD', list, now, ARGV[i])
    call('EXPIRE', list, ttl_s)
  end
end

local function restore()
  call('DEL', shards)
  call('HSET', shards, 'epoch', epoch, 'shards', number)
  for i = first_name, #ARGV do
    call('HSET', shards, ARGV[i], '1')
  end
end

if verb == 'reset' then
  call('HDEL', shards, 'edited')
elseif verb == 'restore' and tonumber(epoch) > tonumber(call('HGET', shards, 'epoch') or 0) then
  restore()
  publish('shards', '')
elseif is_current and verb == 'begin' and not phase then
  call('HSET', shards, 'epoch', epoch, 'phase', 'announced', 'change', change, 'by', by, 'at', whole(now))
  if by ~= 'code' and string.find(change, '^shards ') then
    call('HSET', shards, 'edited', '1')
  end
  call('PERSIST', shards)   -- of a queue that was obliterated only the epoch is left, for a day
  publish('shards', '')
elseif is_current and verb == 'publish' and phase == 'announced' then
  apply(call('HGET', shards, 'change'))
  call('HSET', shards, 'epoch', whole(tonumber(epoch) + 1), 'phase', 'moving')
  publish('shards', '')
elseif is_current and verb == 'count' and phase == 'moving' then
  call('HSET', key('totals'), 'from:' .. ARGV[first_name], ARGV[first_name + 1])
elseif is_current and verb == 'finish' and phase == 'moving' then
  call('HDEL', shards, 'phase', 'change', 'before', 'by', 'at')
  call('HSET', shards, 'moved', whole(now))
  note_retired(key('retired'), RETIRED_TTL_S)
  note_retired(key('retired_messages'), MESSAGES_TTL_S)
  note_retired(key('retired_stats'), STATS_TTL_S)
  adopt_totals()
  publish('shards', '')
else
  return { 'STALE', unpack(call('HGETALL', shards)) }
end
return call('HGETALL', shards)
