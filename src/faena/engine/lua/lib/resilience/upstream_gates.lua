--- What stands before calls to upstreams: a panic, a breaker, limits, budgets. All that some calls need is read in one command
-- and written when it is known how many of them are permitted.
--   claims:<us>u/<upstream>, claims:<us>u/<upstream>/@<tenant>   calls inside the windows of limits, packed
--@include keys, journal, breaker, budgets, upstream_settings, packed_window, sliding_window
--@exports add_report, add_ask, read_gates, admit_jobs, save_gates
--@state call_gates = {}     -- "upstream tenant" -> panic, scope of the breaker, limits
--@state scopes = {}         -- breakers that are read
--@state call_windows = {}   -- lane -> its windows, their room, how many calls this call permits, and how much later they may begin
--@state loaded = {}         -- keys to be read
--@state holders = {}        -- the windows and breakers that they hold
local PLENTY = 100           -- calls that are still allowed, for each that is permitted in advance
local GOOD_FOR_US = 50000    -- how long that permit is good
local WITHIN_US = 1000000    -- how long a job's permit is good for its call at most, and a twentieth of the shortest window at most

--- How much later than its grant a call may begin. A permit counts from its grant on, and as a call at the end of that time:
-- so no window of calls holds more than its limit.
local function later_than_granted(windows)
  local shortest = math.huge
  for _, window in ipairs(windows) do
    shortest = math.min(shortest, window.per_us)
  end
  return math.max(GOOD_FOR_US, math.min(WITHIN_US, math.floor(shortest / 20)))
end

local function load(name, holder)
  local last = #context.loaded + 1
  context.loaded[last], context.holders[last] = key(name), holder
end

local function add_breaker(scope, settings)
  if not context.scopes[scope] then
    context.scopes[scope] = true
    load('breaker:' .. scope, { scope = scope, settings = settings })
  end
end

local function add_windows(gate, text, lane, reason)
  local limited = context.call_windows[lane]
  if not limited then
    local list = windows_of(text, lane)
    limited = { list = list, room = 0, opens_at = 0, taken = 0, later_us = later_than_granted(list) }
    context.call_windows[lane] = limited
    for _, window in ipairs(limited.list) do
      load(window.name, window)
    end
  end
  gate.limits[#gate.limits + 1] = { windows = limited, reason = reason }
end

--- See to it that the breaker that counts reported calls is read; returns its scope.
local function add_report(report)
  local settings = upstream_of(report[1])
  local scope = scope_of(settings, report[1], report[2])
  add_breaker(scope, settings)
  return scope
end

local function gate_of(name, tenant, now)
  local at = name .. ' ' .. tenant
  local gate = context.call_gates[at]
  if not gate then
    local settings = upstream_of(name)
    gate = { name = name, panic = panic_of(name, now), scope = scope_of(settings, name, tenant), limits = {} }
    context.call_gates[at] = gate
    add_breaker(gate.scope, settings)
    if settings.limits then
      add_windows(gate, settings.limits, 'u/' .. name, 'limit')
    end
    if settings.tenant_limits and tenant ~= '' then
      add_windows(gate, settings.tenant_limits, 'u/' .. name .. '/@' .. tenant, 'tenant_limit')
    end
  end
  return gate
end

--- See to it that all is read that stands before the calls of an ask; returns the gates, one for each upstream.
local function add_ask(ask, now)
  local gates = {}
  for i, name in ipairs(ask[1]) do
    gates[i] = gate_of(name, ask[2], now)
  end
  return gates
end

--- Read it all, and what `first` holds, which is returned.
local function read_gates(first, now)
  local found = call('MGET', key(first), unpack(context.loaded))
  for i, holder in ipairs(context.holders) do
    if holder.per_us then
      look_into(holder, found[i + 1], now)
    else
      read_breaker(holder.scope, holder.settings, found[i + 1])
    end
  end
  for _, limited in pairs(context.call_windows) do
    limited.room, limited.opens_at = room_in_windows(limited.list, math.huge, now)
  end
  return found[1]
end

--- How many of `number` calls a gate lets through, else why and until when.
local function room_of(gate, number, now)
  if gate.panic then
    return 0, 'panic', gate.panic.until_at
  end
  local room, reason, until_at = room_of_breaker(breaker_of(gate.scope), now)
  if room >= number then
    room, reason, until_at = number, '', 0
  end
  for _, limit in ipairs(gate.limits) do
    local wide = limit.windows.room - limit.windows.taken
    if wide < room then
      room, reason, until_at = math.max(0, wide), limit.reason, limit.windows.opens_at
    end
  end
  return room, reason, until_at
end

--- How many permits may be given in advance, beside `number`. They are spent whether they are used or not, so there are none
-- unless there is plenty.
local function advance_of(gates, number, advance, wealth)
  if advance <= 0 then
    return 0
  end
  for _, gate in ipairs(gates) do
    advance = breaker_of(gate.scope).s == 'closed' and advance or 0
    for _, limit in ipairs(gate.limits) do
      advance = math.min(advance, math.floor((limit.windows.room - limit.windows.taken - number) / PLENTY))
    end
  end
  return math.max(0, math.min(advance, math.floor((wealth - number) / PLENTY)))
end

--- How many of `number` jobs all of the upstreams they need have room for; else which has none, why and until when.
local function room_behind(gates, number, now)
  local granted, name, reason, until_at = number, '', '', 0
  for _, gate in ipairs(gates) do
    local room, why, opens_at = room_of(gate, number, now)
    if room < granted then
      granted, name, reason, until_at = math.max(room, 0), gate.name, why, opens_at
    end
  end
  return granted, name, reason, until_at
end

--- Permit as many of the jobs of an ask as there is room for; their permits are stem:1, …. If all are permitted, some
-- more may be. An ask for none is one for permits in advance: they are given where one job would be permitted.
local function admit_jobs(ask, gates, now)
  local needed, tenant, number, stem, advance, estimates, lasting_us = unpack(ask)
  local money, least = money_of(needed, tenant, estimates), math.max(number, 1)
  local granted, name, reason, until_at = room_behind(gates, least, now)
  local wealth, poor, why, comes_at, is_soft = room_of_money(money)
  if wealth < granted then
    granted, name, reason, until_at = wealth, poor, why, comes_at
  end
  local more = granted == least and advance_of(gates, number, advance, wealth) or 0
  local is_probe = 0
  granted = math.min(granted, number)
  for _, gate in ipairs(granted + more > 0 and gates or {}) do
    is_probe = use_breaker(breaker_of(gate.scope), granted, stem, now) and 1 or is_probe
    for _, limit in ipairs(gate.limits) do
      limit.windows.taken = limit.windows.taken + granted + more
    end
  end
  reserve_money(money, stem, granted + more, now + lasting_us)
  return { granted, is_probe, name, reason, math.ceil(until_at), more, is_soft }
end

local function save_gates(now)
  for _, limited in pairs(context.call_windows) do
    if limited.taken > 0 then
      spend_in_windows(limited.list, limited.taken, now + limited.later_us, write_last)
    end
  end
  save_money()
  save_breakers(now, write_last)
end
