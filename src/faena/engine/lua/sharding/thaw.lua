--- Lanes have come, or gone: serve them again, or forget that they left.
-- states   none
-- keys     moves, lanes, transfer_out, late, tenants, learned hashes · ring, parked zsets · claims
--          strings · wake zset
--@args     verb, epoch, lane...
--          verb in | early | out | stay | look, which changes nothing
-- returns  the lanes that have not gone: live jobs of theirs are here, or some job is under way. None
--          has gone `out` before the last late job: it may have finished, and is to be taken away yet
-- A lane comes `early` when jobs of it still run where it was. What bounds how many of them run at once
-- counts here only those that are here: such a lane must wait for the last one. A lane is told to `stay` if
-- its move was lost before any job had left.
--@flags allow-oom
--@arrivals
--@include now, queue_settings, tenant_override, freeze_lane, wake_worker, lane_snapshot, keys
local still = {}
local conf, is_coming = conf_now(), verb == 'in' or verb == 'early' or verb == 'stay'
local is_under_way = call('EXISTS', key('transfer_out')) == 1 or (verb == 'out' and call('EXISTS', key('late')) == 1)

--- What was decided, learned and claimed for a lane has gone with it. Claims that stayed would be brought
-- to it again by the next change, in the place of newer ones.
local function forget_lane(lane)
  local control = controls_of({ lane }, now)[lane]
  for _, window in ipairs(windows_of_both(control, conf, lane)) do
    call('HDEL', key('learned'), window.name)
    call('DEL', key(window.name))
  end
  call('HDEL', key('tenants'), lane)
end

local function is_bounded(lane)
  local control = controls_of({ lane }, now)[lane] or {}
  return conf.fifo or conf.tenant_max_running or control.max_running
end

for i = first_lane, #ARGV do
  local lane = ARGV[i]
  if not is_coming and (is_under_way or call('HEXISTS', key('lanes'), lane) == 1) then
    still[#still + 1] = lane
  elseif verb == 'out' and thaw_lane(lane, 'out ' .. epoch) then
    forget_lane(lane)
  elseif verb == 'in' or (verb == 'early' and not is_bounded(lane)) then
    thaw_lane(lane, 'in ' .. epoch)
  elseif verb == 'stay' then
    thaw_lane(lane, 'out ' .. epoch)
  end
end
if is_coming then
  wake_worker()
end
return still
