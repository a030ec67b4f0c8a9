--- One ordinary job, taken in alone: the commonest call, and one that somebody waits for. What an intake
-- would do for it, without the tables of an intake, which cost more than its commands.
--@include read, check, key, tally, score, wake
--- Returns false, with nothing written, when its id is known, or it must take turns with tenants' jobs.
local function take_in_lone(id, spec, conf, now)
  local clock = call('HMGET', key('clock'), 'stamp', 'enqueued', 'laned')
  local stamp = math.max(number_in(clock[1], 0), now) + 1
  check(string.find(spec, '^%d%d%d'), 'a priority')
  local score, enqueued = score_of(conf, stamp, tonumber(string.sub(spec, 1, 3)), 0), count_in(clock[2], 0) + 1
  if count_in(clock[3], 0) > 0 or call('HSETNX', key('specs'), id, spec) == 0 then
    return false
  end
  call('ZADD', key('ready'), score, id)
  arm_wake()
  call('HSET', key('clock'), 'stamp', stamp, 'enqueued', enqueued)
  tell('enqueued', { id })
  return true
end
