--- Take the turn to judge all alerts, unless one of these rules was taken lately.
-- states   none
-- keys     alert_turn string · alert_totals, alerts hashes
--@args     set, token, lease_us, longest_us, queue...
--          which rules · of this turn · how long it may take · how long the next one may be away
-- returns  how long to wait, if it is not given · else: 0 · the alerts under way · twice (queue · its packed totals) …:
--          as they were five minutes ago and an hour ago, or when they were first seen since then
--@flags allow-oom
--@include now, keys, check_arguments
local MINUTE_US = 60000000
local TURN_TTL_S = 3600
local name = key('alert_turn:' .. set)
lease_us, longest_us = instant_of(lease_us, 'lease_us'), instant_of(longest_us, 'longest_us')
check(is_word(token), 'token')

local function totals_since(minutes)
  local minute, missing, found = math.floor(now / MINUTE_US), {}, {}
  for i = first_queue, #ARGV do
    missing[#missing + 1] = ARGV[i]
  end
  for at = minute - minutes, minute - 1 do
    local known = missing[1] and call('HMGET', key('alert_totals:' .. whole(at)), unpack(missing)) or {}
    local left = {}
    for i, queue in ipairs(missing) do
      if known[i] then
        found[#found + 1], found[#found + 2] = queue, known[i]
      else
        left[#left + 1] = queue
      end
    end
    missing = left
  end
  return found
end

local holder, due, ended = string.match(call('GET', name) or '', '^(%S+) (%d+)(.*)$')
local wait = due and tonumber(due) - now or 0
if (holder ~= token or ended ~= '') and wait > 0 and wait <= longest_us then
  return { whole(wait) }
end
call('SET', name, token .. ' ' .. whole(now + lease_us), 'EX', TURN_TTL_S)
return { 0, call('HKEYS', key('alerts')), totals_since(5), totals_since(60) }
