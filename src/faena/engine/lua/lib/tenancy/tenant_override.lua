--- What is decided for a single tenant: its queue's defaults, or an override of its own.
-- `tenants`: lane -> packed limits · max_running · weight · size · held_until (0: until released) ·
-- reason (of the hold), with by, at and ends_at (of all but the hold, which has its own end); a `z`
-- makes it long, see listpack.lua.
--@include safe_read, keys, listpack, shares_by_minute, lane, adaptive_limits
--@exports SETTINGS, has_settings, counts, read_control, controls_of, save_control, weight_of, park
--@exports extend_lane_hold, hold_lane, unpark
local SETTINGS = { limits = true, max_running = true, weight = true, size = true }

local function has_settings(control)
  for name in pairs(SETTINGS) do
    if control[name] ~= nil then
      return true
    end
  end
  return false
end

--- Whether an override says anything at this instant; what has ended is taken out of it. A provider's
-- "not before" outlives settings that end sooner.
local function counts(control, now)
  if control.ends_at and control.ends_at <= now then
    control.limits, control.max_running, control.weight, control.size = nil, nil, nil, nil
    control.ends_at = nil
  end
  if control.held_until and control.held_until ~= 0 and control.held_until <= now then
    control.held_until, control.reason = nil, nil
  end
  return control.held_until ~= nil or has_settings(control)
end

local KINDS = { limits = 'string', max_running = 'number', weight = 'number', size = 'number', held_until = 'number',
                reason = 'string', ends_at = 'number' }

local function read_control(packed)
  local control = keep_kinds(unpacked(packed) or {}, KINDS)
  control.max_running = count_in(control.max_running)
  if not (control.weight and control.weight >= 1e-6 and control.weight <= 1e6) then
    control.weight = nil
  end
  return control
end

--- The overrides of lanes that have one that still counts, by lane.
local function controls_of(lanes, now)
  local controls, over = {}, {}
  if #lanes > 0 and call('EXISTS', key('tenants')) == 1 then
    for i, packed in ipairs(call('HMGET', key('tenants'), unpack(lanes))) do
      local control = packed and read_control(packed)
      if control and counts(control, now) then
        controls[lanes[i]] = control
      elseif control then
        over[#over + 1] = lanes[i]
      end
    end
  end
  if #over > 0 then
    call('HDEL', key('tenants'), unpack(over))
  end
  return controls
end

local function save_control(lane, control)
  control.z = PADDING
  call('HSET', key('tenants'), lane, cmsgpack.pack(control))
end

local function weight_of(control)
  return control and control.weight or 1
end

--- A lane waits outside the ring until an instant; its next turn is kept as a debt.
local function park(lane, turn, until_at)
  call('ZADD', key('parked'), until_at, lane)
  note_parked(lane)
  if turn > virtual_time() then
    call('ZADD', key('debts'), turn, lane)
  end
end

local RATE_LIMITED = 'rate_limited'

--- A provider asked that a tenant be held until an instant, or takes no calls for it; a longer hold stays. Claims that
-- come to its lane see it.
local function extend_lane_hold(lane, until_at, now, reason)
  local control = controls_of({ lane }, now)[lane] or { by = 'handler', at = now }
  if control.held_until ~= 0 and (control.held_until or 0) < until_at then
    control.held_until, control.reason = until_at, reason or RATE_LIMITED
    save_control(lane, control)
  end
  return control
end

--- The same where its job has ended: its limits may fall, and it leaves the ring.
local function hold_lane(lane, until_at, conf, now, reason)
  local control = extend_lane_hold(lane, until_at, now, reason)
  if conf.learn and reason == RATE_LIMITED then
    lower_limits(control.limits or conf.tenant_limits, lane, now)
  end
  local turn = tonumber(call('ZSCORE', key('ring'), lane) or 0)
  call('ZREM', key('ring'), lane)
  park(lane, turn, control.held_until == 0 and FULL or control.held_until)
end

--- Parked lanes whose instant has come, or the given ones that wait for room, may be served again.
local function unpark(lanes)
  if #lanes > 0 then
    call('ZREM', key('parked'), unpack(lanes))
    for _, lane in ipairs(lanes) do
      context.throttles[lane] = 'freed'
    end
    enter_ring(lanes)
  end
end
