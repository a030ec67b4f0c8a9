--- Lanes have come, or gone: serve them again, or forget that they left.
-- states   none
-- keys     moves, tenants hashes · ring, parked zsets · wake zset
-- args     now · why (in|out) · epoch · lane …
-- returns  the lanes that still have live jobs here and so cannot have gone
--@flags allow-oom
--@include now, lane, moves, wake
local why, still = ARGV[2] .. ' ' .. ARGV[3], {}
for i = 4, #ARGV do
  local lane = ARGV[i]
  if ARGV[2] == 'out' and call('HEXISTS', key('lanes'), lane) == 1 then
    still[#still + 1] = lane
  elseif unbar(lane, why) and ARGV[2] == 'out' then
    call('HDEL', key('tenants'), lane)   -- what was decided for it has gone with it
  end
end
arm_wake()
return still
