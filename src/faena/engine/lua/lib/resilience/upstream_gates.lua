--- What stands before calls to upstreams: a panic, a breaker, limits, budgets. All that some calls need is read in one command
-- and written when it is known how many of them are permitted.
--   claims:<us>u/<upstream>, claims:<us>u/<upstream>/@<tenant>   calls inside the windows of limits, packed
--@include keys, journal, breaker, budgets, upstream_settings, packed_window, sliding_window
--@exports add_gate, read_gates, admit_jobs, save_gates
--@state call_gates = {}     -- "upstream tenant" -> panic, scope of the breaker, limits
--@state scopes = {}         -- breakers that are read
--@state call_windows = {}   -- lane -> its windows, how many calls this call permits, and how much later they may be made
--@state loaded = {}         -- keys to be read, and what takes in what they hold, in turns
local PLENTY = 100           -- calls that are still allowed, for each that is permitted in advance
local GOOD_FOR_US = 50000    -- how long that permit is good

local function load(name, take_in)
  local loaded, last = context.loaded, #context.loaded
  loaded[last + 1], loaded[last + 2] = key(name), take_in
end

local function add_breaker(scope, settings)
  if not context.scopes[scope] then
    context.scopes[scope] = true
    load('breaker:' .. scope, function(packed)
      read_breaker(scope, settings, packed)
    end)
  end
end

local function add_windows(gate, text, lane, reason, now)
  if not text then
    return
  elseif not context.call_windows[lane] then
    context.call_windows[lane] = { list = windows_of(text, lane), taken = 0, later_us = 0 }
    for _, window in ipairs(context.call_windows[lane].list) do
      load(window.name, function(stored)
        look_into(window, stored, now)
      end)
    end
  end
  gate.limits[#gate.limits + 1] = { windows = context.call_windows[lane], reason = reason }
end

--- See to it that the breaker of a tenant's calls is read, and, where calls are asked for, all that stands before them.
local function add_gate(name, tenant, is_asked, now)
  local at, settings = name .. ' ' .. tenant, upstream_of(name)
  local scope = scope_of(settings, name, tenant)
  add_breaker(scope, settings)
  if not is_asked or context.call_gates[at] then
    return scope
  end
  local gate = { panic = panic_of(name, now), scope = scope, limits = {} }
  add_windows(gate, settings.limits, 'u/' .. name, 'limit', now)
  if tenant ~= '' then
    add_windows(gate, settings.tenant_limits, 'u/' .. name .. '/@' .. tenant, 'tenant_limit', now)
  end
  context.call_gates[at] = gate
  return scope
end

--- Read it all, and what `first` holds, which is returned.
local function read_gates(first)
  local loaded, names = context.loaded, { key(first) }
  for i = 1, #loaded, 2 do
    names[#names + 1] = loaded[i]
  end
  local found = call('MGET', unpack(names))
  for i = 2, #found do
    loaded[2 * i - 2](found[i])
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
    local taken = limit.windows.taken
    local wide, opens_at = room_in_windows(limit.windows.list, room + taken, now)
    if wide - taken < room then
      room, reason, until_at = math.max(0, wide - taken), limit.reason, opens_at
    end
  end
  return room, reason, until_at
end

--- How many permits may be given in advance, beside `number`. They are spent whether they are used or not, so there are none
-- unless there is plenty.
local function advance_of(ask, number, money, now)
  local needed, tenant, advance = ask[1], ask[2], ask[5]
  for _, name in ipairs(advance > 0 and needed or {}) do
    local gate = context.call_gates[name .. ' ' .. tenant]
    advance = breaker_of(gate.scope).s == 'closed' and advance or 0
    for _, limit in ipairs(gate.limits) do
      local room = room_in_windows(limit.windows.list, math.huge, now) - limit.windows.taken - number
      advance = math.min(advance, math.floor(room / PLENTY))
    end
  end
  if advance > 0 then
    advance = math.min(advance, math.floor((room_of_money(money, 2 ^ 53) - number) / PLENTY))
  end
  return math.max(advance, 0)
end

--- How many of the jobs of an ask all of the upstreams they need have room for; else which has none, why and until when.
local function room_for(ask, money, now)
  local needed, tenant, number = unpack(ask)
  local granted, refusal = number, { '', '', 0 }
  for _, name in ipairs(needed) do
    local room, reason, until_at = room_of(context.call_gates[name .. ' ' .. tenant], number, now)
    if room < granted then
      granted, refusal = math.max(room, 0), { name, reason, until_at }
    end
  end
  local room, name, reason, until_at, is_soft = room_of_money(money, granted)
  if room < granted then
    granted, refusal = room, { name, reason, until_at }
  end
  return granted, refusal, is_soft
end

--- Permit as many of the jobs of an ask as there is room for; their permits are stem:1, …. If all are permitted, some
-- more may be.
local function admit_jobs(ask, now)
  local needed, tenant, number, stem, _, estimates, lasting_us = unpack(ask)
  local money = money_of(needed, tenant, estimates)
  local granted, refusal, is_soft = room_for(ask, money, now)
  local more = granted == number and advance_of(ask, number, money, now) or 0
  local is_probe = 0
  for _, name in ipairs(granted > 0 and needed or {}) do
    local gate = context.call_gates[name .. ' ' .. tenant]
    is_probe = use_breaker(breaker_of(gate.scope), granted, stem, now) and 1 or is_probe
    for _, limit in ipairs(gate.limits) do
      limit.windows.taken = limit.windows.taken + granted + more
      limit.windows.later_us = more > 0 and GOOD_FOR_US or limit.windows.later_us
    end
  end
  reserve_money(money, stem, granted + more, now + lasting_us)
  return { granted, is_probe, refusal[1], refusal[2], math.ceil(refusal[3]), more, is_soft }
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
