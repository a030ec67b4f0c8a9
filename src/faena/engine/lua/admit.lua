--- Lanes have come, or gone: serve them again, or forget that they left.
-- states   none
-- keys     moves, lanes, outbox, late, tenants, learned hashes · ring, parked zsets · wake zset
-- args     now · why (in, out, or look, which changes nothing) · epoch · lane …
-- returns  the lanes that have not gone: live jobs of theirs are here, or some job is under way. None
--          has gone `out` before the last late job: it may have finished, and is to be taken away yet
--@flags allow-oom
--@include now, conf, lane, tenant, moves, wake, tally
local now, verb, epoch, still = now_us(ARGV[1]), ARGV[2], ARGV[3], {}
local is_under_way = call('EXISTS', key('outbox')) == 1 or (verb == 'out' and call('EXISTS', key('late')) == 1)

--- What was decided and learned for a lane has gone with it.
local function forget_lane(lane)
  local control = controls_of({ lane }, now)[lane]
  for _, window in ipairs(windows_of(control and control.limits or conf_now().tenant_limits, lane)) do
    call('HDEL', key('learned'), window.name)
  end
  call('HDEL', key('tenants'), lane)
end

for i = 4, #ARGV do
  local lane = ARGV[i]
  if verb ~= 'in' and (is_under_way or call('HEXISTS', key('lanes'), lane) == 1) then
    still[#still + 1] = lane
  elseif verb ~= 'look' and unbar(lane, verb .. ' ' .. epoch) and verb == 'out' then
    forget_lane(lane)
  end
end
if verb == 'in' then
  arm_wake()
end
flush_lanes()
flush_tally(now, nil, '')
return still
