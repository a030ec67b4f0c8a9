--- What was counted and measured in some minutes or hours, or ever.
-- states   none
-- keys     stats, stats_hour, totals hashes
--@args     unit, first, last
--          minute, hour or total; minutes or hours since 1970, at most 60 of them
-- returns  now · the minute that is counted now ('' if none ever was) · (number · {name, value …}) … of those in
--          which there was anything; of a total, its number is 0
--@flags no-writes
--@include now, keys, minutes, check_arguments
local MOST = 60
local FAMILIES = { minute = 'stats:', hour = 'stats_hour:' }

local open = call('HGET', key('totals'), 'open') or ''
local found = { now, open }
if unit == 'total' then
  local flat = {}
  for name, number in pairs(totals_now()) do
    flat[#flat + 1], flat[#flat + 2] = name, whole(number)
  end
  found[3], found[4] = 0, flat
  return found
end
check(FAMILIES[unit], 'minute, hour or total')
first, last = instant_of(first, 'the first'), instant_of(last, 'the last')
for at = first, math.min(last, first + MOST - 1) do
  local fields = call('HGETALL', key(FAMILIES[unit] .. whole(at)))
  if #fields > 0 then
    found[#found + 1], found[#found + 2] = at, fields
  end
end
return found
