--- Schedules: a record is a line with its version, which every writer makes anew, and what the
-- programs have written, which is never read here.
--   schedules      name -> record
--   schedule_due   name -> the instant it is due; none of one that is paused or over
--@include keys
--@exports version_of, save_schedule
local function version_of(name)
  return string.match(call('HGET', key('schedules'), name) or '', '^[^\n]*')
end

--- An empty record removes it; without an instant it is never due.
local function save_schedule(name, version, record, due)
  if record == '' then
    call('HDEL', key('schedules'), name)
  else
    call('HSET', key('schedules'), name, version .. '\n' .. record)
  end
  if record == '' or due == '' then
    call('ZREM', key('schedule_due'), name)
  else
    call('ZADD', key('schedule_due'), due, name)
  end
end
