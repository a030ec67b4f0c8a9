--- What a call did, recorded once for the whole batch: minute counters and one event.
--@include safe_read, keys, now, queue_settings
--@exports count, record_action, record_event, is_first_shard, record_one_event, flush_event
--@state counts = {}   -- counter -> number
--@state event_fields = {}   -- event field, ids, event field, ids, …
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
local function record_action(name, what)
  local fields, last = context.event_fields, #context.event_fields
  fields[last + 1], fields[last + 2] = name, what
end

--- Count `ids` under `name` and put them into the batch's event.
local function record_event(name, ids)
  if #ids > 0 then
    count(name, #ids)
    record_action(name, table.concat(ids, ' '))
  end
end

--- Where something is done at every shard of a queue, the first one records it.
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
local function record_one_event(name, id, now, kept, worker)
  local minute = minute_of(now)
  if bump(minute, name, 1) == 1 then
    call('EXPIRE', minute, STATS_TTL_S)
  end
  if kept and kept > 0 then
    call('XADD', key('events'), 'MAXLEN', '~', kept, '*', 'at', now, 'worker', worker, name, id)
  end
end

--- Write both; a call that has nothing to record needs no settings either.
local function flush_event()
  local counts, fields = context.counts, context.event_fields
  if next(counts) then
    local minute, fresh = minute_of(now_us()), false
    for name, number in pairs(counts) do
      fresh = bump(minute, name, number) == number or fresh
    end
    if fresh then
      call('EXPIRE', minute, STATS_TTL_S)
    end
  end
  local kept = fields[1] and (context.conf or conf_now()).events_kept or 0
  if kept > 0 then
    local by = context.by
    call('XADD', key('events'), 'MAXLEN', '~', kept, '*', 'at', now_us(), by ~= '' and 'by' or 'worker',
      by ~= '' and by or context.worker, unpack(fields))
  end
end
