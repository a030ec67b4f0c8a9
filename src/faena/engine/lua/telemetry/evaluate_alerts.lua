--- Judge all alerts by what was read, and write a notice of what has changed for each channel and severity. It stays
-- until its job is enqueued.
-- states   none
-- keys     alert_turn string · alerts, alert_totals, alert_silences, alert_notices hashes · alert_history, events streams
--@args     set, token, wait_us, readings, queue totals...
--          the turn that was taken · until the next one · of each alert, packed: see alert_level.lua · packed totals of queues
-- returns  (notice · packed) …, also those that were not enqueued before
-- refuses  STALE, if another turn has begun
--@flags allow-oom
--@include now, keys, check_arguments, safe_read, alert_level, alert_notices
local MINUTE_US, TOTALS_TTL_S, TURN_TTL_S = 60000000, 65 * 60, 3600
local UNWATCHED_US, LATE_US = 10 * MINUTE_US, 1.5 * MINUTE_US
local name = key('alert_turn:' .. set)
wait_us = instant_of(wait_us, 'wait_us')
local given = unpacked(readings)
check(given, 'readings')
local holder, ended = string.match(call('GET', name) or '', '^(%S+) %d+(.*)$')
if holder ~= token then
  return { 'STALE' }
elseif ended ~= '' then   -- this call was answered before
  return call('HGETALL', key('alert_notices'))
end

--- Whether programs with other rules judge an alert, and go on to: it is theirs to lower. Else two that see other queues, or
-- have other bounds, would tell each other's alerts resolved and firing in turn.
local function is_of_others(alert)
  local due = alert.o ~= '' and alert.o ~= set and string.match(call('GET', key('alert_turn:' .. alert.o)) or '', '^%S+ (%d+)')
  return due and now - tonumber(due) <= LATE_US
end

local by_name, stored = {}, {}
for _, list in ipairs(given) do
  local reading = reading_of(list)
  check(reading, 'readings')
  by_name[reading.rule .. ' ' .. reading.subject] = reading
end
local flat = call('HGETALL', key('alerts'))
for i = 1, #flat, 2 do
  stored[flat[i]] = flat[i + 1]
end

--- What is stored and was not read: it is well, if these rules were the last to judge it or nobody does any more.
for about, packed in pairs(stored) do
  local alert = alert_in(packed)
  if not by_name[about] and (alert.o == set or now - alert.a > UNWATCHED_US) then
    by_name[about] = quiet_reading(about)
  end
end

read_silences()
local names = {}
for about in pairs(by_name) do
  names[#names + 1] = about
end
table.sort(names)
for _, about in ipairs(names) do
  local reading, alert = by_name[about], alert_in(stored[about])
  local was, is_theirs = alert.l, is_of_others(alert)
  alert.a, alert.ta = math.min(alert.a, now), math.min(alert.ta, now)   -- the clock may have been put back
  judge_alert(alert, reading, now)
  if alert.l > was or not is_theirs then
    alert.o, alert.a = set, now
    if alert.l ~= was then
      record_alert(about, alert, was)
    end
    tell_alert(alert, reading)
    keep_alert(about, alert)
  end
end
write_notices(token)

local minute = key('alert_totals:' .. whole(math.floor(now / MINUTE_US)))
for i = first_queue, #ARGV, 2 do
  call('HSETNX', minute, ARGV[i], ARGV[i + 1])
end
if #ARGV >= first_queue then
  call('EXPIRE', minute, TOTALS_TTL_S)
end
call('SET', name, token .. ' ' .. whole(now + wait_us) .. ' done', 'EX', TURN_TTL_S)
return call('HGETALL', key('alert_notices'))
