--- All alerts under way, silences, and the last changes.
-- states   none
-- keys     alerts, alert_silences, alert_notices hashes · alert_history stream
--@args     most
--          how many changes, the latest first
-- returns  now · (rule and subject · packed) … · (id · packed) … of silences · (packed) … of changes · notices that are no
--          jobs yet
--@flags no-writes
--@include now, keys, check_arguments
local changes = {}
most = size_of(most, 'most')
for _, entry in ipairs(most > 0 and call('XREVRANGE', key('alert_history'), '+', '-', 'COUNT', most) or {}) do
  changes[#changes + 1] = entry[2][2]
end
return { now, call('HGETALL', key('alerts')), call('HGETALL', key('alert_silences')), changes, call('HLEN', key('alert_notices')) }
