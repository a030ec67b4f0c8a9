--- Write the record of a schedule, at the queue's first shard, if nobody has since it was read.
-- states   none
-- keys     schedules hash · schedule_due zset · events stream
-- args     now · name · version that was read ('' where there was none) · new version · record ('' to
--          remove it) · due ('' for never) · by ('' tells of nothing)
-- returns  OK (also for the same call again)
-- refuses  STALE
--@flags allow-oom
--@include schedule, tally, key
local name, expected, version, record, due = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local known = version_of(name)
if known == version or (record == '' and known == '') then
  return 'OK'
elseif known ~= expected then
  return 'STALE'
end
save_schedule(name, version, record, due)
publish('schedules', name)
if (ARGV[7] or '') ~= '' then
  tell_of(record == '' and 'schedule_removed' or 'schedule_changed', name)
  context.by = ARGV[7]
end
return 'OK'
