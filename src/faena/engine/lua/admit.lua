--- Lanes have come, or gone: serve them again, or forget that they left.
-- states   none
-- keys     moves, lanes, outbox, tenants hashes · ring, parked zsets · wake zset
-- args     now · why (in, out, or look, which changes nothing) · epoch · lane …
-- returns  the lanes that have not gone: live jobs of theirs are here, or some job is under way
--@flags allow-oom
--@include now, lane, moves, wake
local verb, epoch, still = ARGV[2], ARGV[3], {}
local is_under_way = call('EXISTS', key('outbox')) == 1
for i = 4, #ARGV do
  local lane = ARGV[i]
  if verb ~= 'in' and (is_under_way or call('HEXISTS', key('lanes'), lane) == 1) then
    still[#still + 1] = lane
  elseif verb ~= 'look' and unbar(lane, verb .. ' ' .. epoch) and verb == 'out' then
    call('HDEL', key('tenants'), lane)   -- what was decided for it has gone with it
  end
end
if verb == 'in' then
  arm_wake()
end
flush_lanes()
return still
