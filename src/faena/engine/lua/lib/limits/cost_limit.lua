--- Limits by cost: what the jobs claimed in a window are estimated at is at most its limit.
-- A setting is `max/window/unit …`. A job says `cost=unit:number,…` in its first line, and what it does not
-- name costs 1. Windows are packed like those of lanes' limits: `costs:<window>/<unit>` of the queue,
-- `claims:<window>/<unit><lane>` of a lane.
--@include keys, claimed_specs, packed_window
--@exports cost_windows, look_into_costs, costs_in, open_purse, afford, give_back, has_room_at
local NO_COSTS = {}

local function cost_windows(text, lane)
  local windows = {}
  for max, per, unit in string.gmatch(text or '', '(%d+)/(%d+)/(%S+)') do
    local name = (lane and 'claims:' or 'costs:') .. per .. '/' .. unit .. (lane or '')
    max = tonumber(max)
    windows[#windows + 1] = { max = max, limit = max, per_us = tonumber(per), unit = unit, name = name, taking = 0 }
  end
  return windows
end

--- Note what windows hold now.
local function look_into_costs(windows, now)
  local names = {}
  for i, window in ipairs(windows) do
    names[i] = key(window.name)
  end
  for i, stored in ipairs(#names > 0 and call('MGET', unpack(names)) or {}) do
    look_into(windows[i], stored, now)
  end
  return windows
end

--- What a job's first line estimates it at, by unit.
local function costs_in(spec)
  local text = spec and string.byte(spec, 4) ~= 10 and string.match(spec, '^[^\n]- cost=(%S+)')
  if not text then
    return NO_COSTS
  end
  local costs = {}
  for unit, number in string.gmatch(text, '([%w_]+):(%d+)') do
    costs[unit] = tonumber(number)
  end
  return costs
end

--- The first window that has no room for a job, or nil.
local function too_small(windows, costs)
  for _, window in ipairs(windows) do
    if window.sum + window.taking + (costs[window.unit] or 1) > window.max then
      return window
    end
  end
end

local function reserve(windows, costs)
  for _, window in ipairs(windows) do
    window.taking = window.taking + (costs[window.unit] or 1)
  end
end

--- When a window that is too small holds less: another look may be needed then.
local function opens_at(window, now)
  return (window.oldest or now) + window.per_us
end

--- What a claim may cost, or nil where nothing is limited by cost.
local function open_purse(conf, now)
  if conf.costs or conf.tenant_costs then
    return { windows = look_into_costs(cost_windows(conf.costs), now), number = 0, bytes = 0, now = now,
             look = new_look() }
  end
end

--- How many of `ids`, in their order, a claim can pay for out of the queue's windows and those of their
-- lane. The next one waits and none overtakes it: where the lane's window is too small, with the instant
-- to look again; where the queue's is, or the claim has bytes enough, the purse is closed.
local function afford(purse, own, ids)
  local specs = look_at_specs(ids, purse.look)
  for i, spec in ipairs(specs) do
    local costs, bytes = costs_in(spec), purse.bytes + #(spec or '')
    local short, empty = too_small(own, costs), too_small(purse.windows, costs)
    if purse.number > 0 and bytes > CLAIMED_BYTES then
      purse.is_closed, purse.is_full = true, true
      return i - 1
    elseif short then
      return i - 1, opens_at(short, purse.now)
    elseif empty then
      purse.is_closed, purse.opens_at = true, opens_at(empty, purse.now)
      return i - 1
    end
    reserve(own, costs)
    reserve(purse.windows, costs)
    purse.number, purse.bytes = purse.number + 1, bytes
  end
  purse.is_full = #specs < #ids
  purse.is_closed = purse.is_full
  return #specs
end

--- Take up to `number` of what was reserved at an instant out of a window; returns how much was there.
-- What has left the window, or stands in it under another instant, is given back by time alone.
local function give_back(window, instant, number)
  local width, parts, given = window.per_us / LANE_BUCKETS, {}, 0
  for at = window.from, #window.stored, 16 do
    local when, held = struct.unpack('>dd', window.stored, at)
    local is_bucket = window.limit > LANE_BUCKETS and math.floor(when / width) == math.floor(instant / width)
    if when == instant or is_bucket then
      local back = math.min(held, number - given)
      held, given = held - back, given + back
    end
    if held > 0 then
      parts[#parts + 1] = struct.pack('>dd', when, held)
    end
  end
  if given > 0 then
    call('SET', key(window.name), struct.pack('>d', window.sum - given) .. table.concat(parts), 'KEEPTTL')
  end
  return given
end

--- The instant at which a window has room for so much, if nothing more is claimed; nil for never.
local function has_room_at(window, cost)
  local sum, at = window.sum, window.from
  while sum + cost > window.max and at <= #window.stored do
    local _, held = struct.unpack('>dd', window.stored, at)
    sum, at = sum - held, at + 16
  end
  if sum + cost <= window.max and at > window.from then
    return (struct.unpack('>d', window.stored, at - 16)) + window.per_us
  end
end
