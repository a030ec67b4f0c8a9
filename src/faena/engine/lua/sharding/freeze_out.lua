--- Lanes leave this shard: they are served here no more, and what was decided for them is told.
-- states   none
-- keys     moves, tenants, learned hashes · ring, parked, debts zsets · claims strings
--@args     epoch, lane...
--          epoch that the change will have
-- returns  the last stamp · for each lane a packed {override, (window · claims · ttl_ms · learned) …}
-- refuses  STALE (the change is published)
--@flags allow-oom
--@arrivals
--@include now, queue_settings, tenant_override, freeze_lane, lane_snapshot, keys
local conf, answers = conf_now(), {}
if is_sealed(epoch) then
  return { 'STALE' }
end

local function snapshot_of(lane, control)
  local snapshot = { control and cmsgpack.pack(control) or '' }
  for _, window in ipairs(windows_of_both(control, conf, lane)) do
    local claims = call('GET', key(window.name))
    local learned = call('HGET', key('learned'), window.name)
    if claims or learned then
      snapshot[#snapshot + 1], snapshot[#snapshot + 2] = window.name, claims or ''
      snapshot[#snapshot + 1], snapshot[#snapshot + 2] = call('PTTL', key(window.name)), learned or ''
    end
  end
  return (control or #snapshot > 1) and snapshot or nil
end

answers[1] = call('HGET', key('clock'), 'stamp') or '0'
for i = first_lane, #ARGV do
  local lane = ARGV[i]
  freeze_lane(lane, 'out ' .. epoch)
  local snapshot = snapshot_of(lane, controls_of({ lane }, now)[lane])
  answers[#answers + 1] = snapshot and cmsgpack.pack(snapshot) or ''
end
return answers
