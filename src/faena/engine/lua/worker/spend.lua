--- Say what a running job has used: what its claim reserved in the windows of limits by cost is put right.
-- states   none
-- keys     leases, specs, marks hashes · costs, claims strings · parked, wake zsets
--@args     id, lease, unit used...
--          used so far, by unit
-- returns  OK (also when it was said before)
-- refuses  LEASE_LOST · UNCONFIGURED
-- Less than was reserved is given back where the claim stands; more is charged now, and may leave the
-- window above its limit, which then grants nothing until there is room again.
--@flags allow-oom
--@include now, queue_settings, job_metadata, lease_record, lane, wake_worker, cost_limit, keys, packed_window
local conf = conf_now()
local record = call('HGET', key('leases'), id)
if not conf.version then
  return 'UNCONFIGURED'
elseif not holds_lease(record, lease) then
  return 'LEASE_LOST'
end
local claimed_at, lane = claimed_in(record, now), place_in(record)
local mark, estimate = marks_of({ id })[id] or {}, costs_in(call('HGET', key('specs'), id))
local said = mark.v and mark.v[1] == lease and mark.v[2] or {}
local windows = look_into_costs(cost_windows(conf.costs), now)
local given, used = 0, {}
for _, window in ipairs(lane and look_into_costs(cost_windows(conf.tenant_costs, lane), now) or {}) do
  windows[#windows + 1] = window
end
for i = first_unit, #ARGV, 2 do
  used[ARGV[i]] = tonumber(ARGV[i + 1])
end

for _, window in ipairs(windows) do
  local unit = window.unit
  local before = said[unit] or estimate[unit] or 1
  local more = (used[unit] or before) - before
  if more > 0 then
    window.taking = more
    spend_in_windows({ window }, 0, now)
  elseif more < 0 then
    given = given + give_back(window, claimed_at, -more)
  end
end
for unit, number in pairs(used) do
  said[unit] = number
end
mark.v = { lease, said }
save_mark(id, mark)
if given > 0 then
  local until_at = lane and call('ZSCORE', key('parked'), lane)
  if until_at and tonumber(until_at) < FULL then
    call('ZADD', key('parked'), 'XX', now, lane)   -- the next exchange looks at it again
  end
  wake_worker()
end
return 'OK'
