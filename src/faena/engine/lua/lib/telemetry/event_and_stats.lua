--- What a call did, recorded once for the whole batch: minute counters and one event.
--@include safe_read, keys, now, queue_settings, minutes
--@exports count, count_tasks, record_action, record_event, is_first_shard, record_one_event, flush_event
--@state counts = {}   -- counter -> number
--@state tasks = {}   -- what a worker has measured: task:<name> -> see minutes.lua
--@state event_fields = {}   -- event field, ids, event field, ids, …
--@state worker = ''   -- whose call it is, if a worker's
--@state by = ''   -- else who asked for it, if that is known
--@ending flush_event
local function count(name, number)
  if number > 0 then
    local counts = context.counts
    counts[name] = (counts[name] or 0) + number
  end
end

--- Add what a worker has measured of its jobs, by task.
local function count_tasks(tasks)
  for name, task in pairs(tasks) do
    if type(name) == 'string' and string.find(name, '^task:') then
      context.tasks[name] = task
    end
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

--- The whole of it, for a call that has done one thing to one job.
local function record_one_event(name, id, at, kept, worker)
  local now = now_us()
  if bump(minute_of(now), name, 1) == 1 then
    count_minute(now)
  end
  if kept and kept > 0 then
    call('XADD', key('events'), 'MAXLEN', '~', kept, '*', 'at', at, 'worker', worker, name, id)
  end
end

--- Write both; a call that has nothing to record needs no settings either.
local function flush_event()
  local counts, fields = context.counts, context.event_fields
  if next(counts) or next(context.tasks) then
    local now = now_us()
    local minute, is_first = minute_of(now), next(context.tasks) ~= nil
    for name, number in pairs(counts) do
      is_first = bump(minute, name, number) == number or is_first
    end
    for name, task in pairs(context.tasks) do
      add_task(minute, name, task)
    end
    if is_first then
      count_minute(now)
    end
  end
  local kept = fields[1] and (context.conf or conf_now()).events_kept or 0
  if kept > 0 then
    local by = context.by
    call('XADD', key('events'), 'MAXLEN', '~', kept, '*', 'at', now_us(), by ~= '' and 'by' or 'worker',
      by ~= '' and by or context.worker, unpack(fields))
  end
end
