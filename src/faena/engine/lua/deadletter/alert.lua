--- Tell of conditions at the dead-letter desk, each once an hour, also if several workers notice it.
-- states   none
-- keys     desk_alerts hash · events stream
--@args     name what...
--          what is to be told of each
-- returns  the names that were told now
-- refuses  UNCONFIGURED
--@flags allow-oom
--@include now, queue_settings, event_and_stats, keys
local HOUR_US = 3600000000
local conf, names = conf_now(), {}
if not conf.version then
  return { 'UNCONFIGURED' }
end
for i = first_name, #ARGV, 2 do
  local name, last = ARGV[i], call('HGET', key('desk_alerts'), ARGV[i])
  if not last or now - last >= HOUR_US or now < tonumber(last) then
    call('HSET', key('desk_alerts'), name, now)
    record_event(name, { ARGV[i + 1] })
    names[#names + 1] = name
  end
end
return names
