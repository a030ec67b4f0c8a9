--- What a call did, told once for the whole batch: minute counters and one event.
--@include safe_read, keys, now, queue_settings
--@exports count, tell_of, tell, is_first_shard, tell_one, flush_event
--@state counts = {}   -- counter -> number
--@state told = {}   -- event field, ids, event field, ids, …
--@state worker = ''   -- whose call it is, if a worker's
--@state by = ''   -- else who asked for it, if that is known
--@ending flush_event
local STATS_TTL_S = 30 * 86400


local function count(name, number)
  if number > 0 then
    local counts = context.counts
    counts[name] = (counts[name] or 0) + number
  end
end

--- Put what an operator did into the event, and count nothing; spaces part what it was done to, but in a
-- reason they are its own.
local function tell_of(name, what)
  local told, last = context.told, #context.told
  told[last + 1], told[last + 2] = name, what
end

--- Count `ids` under `name` and put them into the batch's event.
local function tell(name, ids)
  if #ids > 0 then
    count(name, #ids)
    tell_of(name, table.concat(ids, ' '))
  end
end

--- Where something is done at every shard of a queue, the first one tells of it.
local function is_first_shard()
  return not string.find(key(''), '{[^}]*/')
end

local minute_at, minute_name = 0, ''   -- kept from call to call: what the minute is called

local function minute_of(now)
  local minute = math.floor(now / 60000000)
  if minute ~= minute_at then
    minute_at, minute_name = minute, 'stats:' .. whole(minute)
  end
  return key(minute_name)
end

--- The whole of it, for a call that has done one thing to one job.
local function tell_one(name, id, now, kept, worker)
  local minute = minute_of(now)
  if bump(minute, name, 1) == 1 then
    call('EXPIRE', minute, STATS_TTL_S)
  end
  if kept and kept > 0 then
    call('XADD', key('events'), 'MAXLEN', '~', kept, '*', 'at', now, 'worker', worker, name, id)
  end
end

--- Write both; a call that has nothing to tell needs no settings either.
local function flush_event()
  local counts, told = context.counts, context.told
  if next(counts) then
    local minute, fresh = minute_of(now_us()), false
    for name, number in pairs(counts) do
      fresh = bump(minute, name, number) == number or fresh
    end
    if fresh then
      call('EXPIRE', minute, STATS_TTL_S)
    end
  end
  local kept = told[1] and (context.conf or conf_now()).events_kept or 0
  if kept > 0 then
    local by = context.by
    call('XADD', key('events'), 'MAXLEN', '~', kept, '*', 'at', now_us(), by ~= '' and 'by' or 'worker',
      by ~= '' and by or context.worker, unpack(told))
  end
end
