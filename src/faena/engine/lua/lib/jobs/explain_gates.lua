--- The gates in front of jobs, for scripts that only read: name · detail · until_us (0 when unknown) …
--@include safe_read, keys, lane, closed_windows, tenant_override
--@exports gate, explain_limits, explain_costs, explain_tenant
--@state gates = {}
--@state sure_at = 0     -- before then no limit lets the job start, whatever else happens
--@state likely_at = 0   -- the same, if all that seem to come first do

local function gate(name, detail, until_at)
  local gates, last = context.gates, #context.gates
  gates[last + 1], gates[last + 2], gates[last + 3] = name, tostring(detail), whole(until_at or 0)
end

--- Windows that are used up are gates; `ahead` says how many of their jobs start before this one, in any case (sure) and
-- as far as it seems (likely), and has the set whose first job does.
local function explain_limits(name, windows, now, ahead)
  for _, window in ipairs(windows) do
    if window.opens_at then
      gate(name, window.told, window.opens_at)
    end
    context.sure_at = math.max(context.sure_at, room_after(window, ahead.sure, now))
    context.likely_at = math.max(context.likely_at, room_after(window, ahead.likely, now))
  end
end

--- Limits by cost without room for the next job; one that is too small for it never has room (0).
local function explain_costs(name, windows)
  for _, window in ipairs(windows) do
    gate(name, window.limit, window.opens_at)
    context.sure_at = math.max(context.sure_at, window.opens_at or 0)
    context.likely_at = math.max(context.likely_at, window.opens_at or 0)
  end
end

--- What keeps back a job of a lane because of its tenant, behind `ahead`; without an id, the first one that is ready.
local function explain_tenant(lane, id, conf, now, ahead)
  if call('HEXISTS', key('moves'), lane) == 1 then
    gate('tenant_moving', '')
  end
  local control = read_control(call('HGET', key('tenants'), lane))
  if control.ends_at and control.ends_at <= now then
    control = { held_until = control.held_until, reason = control.reason }
  end
  local held = control.held_until
  if held and (held == 0 or held > now) then
    gate('tenant_held', control.reason or '', held)
  end
  local most, count = control.max_running or conf.tenant_max_running, call('HGET', key('lanes'), lane)
  if most and count_in(count, 0) % LIVE >= most then
    gate('tenant_max_running', most)
  end
  explain_limits('tenant_limit', lane_windows_now(control.limits or conf.tenant_limits, lane, now), now, ahead)
  explain_costs('tenant_limit', small_windows(conf.tenant_costs, lane, id, ahead.set, now))
end
