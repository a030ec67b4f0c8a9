--- The gates in front of jobs, for scripts that only read: name · detail · until_us (0 when unknown) …
--@include keys, lane, closed_windows
--@exports gate, explain_limits, explain_tenant
--@state gates = {}

local function gate(name, detail, until_at)
  local gates, last = context.gates, #context.gates
  gates[last + 1], gates[last + 2], gates[last + 3] = name, tostring(detail), whole(until_at or 0)
end

local function explain_limits(name, windows)
  for _, window in ipairs(windows) do
    gate(name, window.limit, window.opens_at)
  end
end

--- What keeps back a job of a lane because of its tenant; without an id, the first one that is ready.
local function explain_tenant(lane, id, conf, now)
  if call('HEXISTS', key('moves'), lane) == 1 then
    gate('tenant_moving', '')
  end
  local packed = call('HGET', key('tenants'), lane)
  local control = packed and cmsgpack.unpack(packed) or {}
  if control.ends_at and control.ends_at <= now then
    control = { held_until = control.held_until, reason = control.reason }
  end
  local held = control.held_until
  if held and (held == 0 or held > now) then
    gate('tenant_held', control.reason or '', held)
  end
  local most, count = control.max_running or conf.tenant_max_running, call('HGET', key('lanes'), lane)
  if most and tonumber(count or 0) % LIVE >= most then
    gate('tenant_max_running', most)
  end
  explain_limits('tenant_limit', closed_lane_windows(control.limits or conf.tenant_limits, lane, now))
  explain_limits('tenant_limit', small_windows(conf.tenant_costs, lane, id, 'lane:' .. lane, now))
end
