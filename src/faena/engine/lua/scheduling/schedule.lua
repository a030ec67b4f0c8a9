--- Write the record of a schedule, at the queue's first shard, unless it has changed since it was read.
-- states   none
-- keys     schedules hash · schedule_due zset · events stream
--@args     name, expected?, version, record?, due?, by?
--          expected is the version that was read, '' where there was none; record '' to remove it; due '' for never; by
--          '' tells of nothing
-- returns  OK (also for the same call again)
-- refuses  STALE
--@flags allow-oom
--@include schedule_record, event_and_stats, keys
local known = version_of(name)
if known == version or (record == '' and known == '') then
  return 'OK'
elseif known ~= expected then
  return 'STALE'
end
save_schedule(name, version, record, due)
publish('schedules', name)
if by ~= '' then
  record_action(record == '' and 'schedule_removed' or 'schedule_changed', name)
  context.by = by
end
return 'OK'
