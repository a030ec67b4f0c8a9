--- Upstreams: their settings as programs have declared them, and their panics, by name.
--   upstreams   name -> packed settings: errors, volume, window_us, open_us, longest_us, probes, probe_us, ramp_us,
--               slow?, per_tenant?, panic_after?, limits?, tenant_limits?, currency?, call_micro? (what a call costs at most), budgets?; $ -> packed: currency ->
--               budgets of all upstreams together; !name -> packed panic: until_at (0: until it is ended),
--               reason, by, at
--@include safe_read, keys
--@exports read_upstreams, upstream_of, has_prices, total_budgets, panic_of
--@state upstreams = {}   -- as read in this call
--@state panics = {}
--@state totals = {}   -- currency -> budgets
local MOST_KNOWN = 1000
local PANIC = { until_at = 'number', at = 'number', reason = 'string', by = 'string' }
local known, number_known = {}, 0   -- decoded settings by their packed text, from one call to the next

local function settings_in(packed)
  local settings = known[packed]
  if not settings then
    settings = unpacked(packed)
    known, number_known = number_known < MOST_KNOWN and known or {}, number_known < MOST_KNOWN and number_known + 1 or 1
    known[packed] = settings
  end
  return settings
end

local function panic_in(packed)
  local panic = keep_kinds(unpacked(packed) or {}, PANIC)
  panic.until_at, panic.at = panic.until_at or 0, panic.at or 0
  panic.reason, panic.by = panic.reason or '', panic.by or ''
  return panic
end

--- Read all upstreams that reports, settled lots and asks name; returns the names of which nothing is known.
local function read_upstreams(reports, settled, asks)
  local fields, names, seen, missing = { '$' }, {}, {}, {}

  local function add(name)
    if not seen[name] then
      seen[name], names[#names + 1] = true, name
      fields[#fields + 1], fields[#fields + 2] = name, '!' .. name
    end
  end

  for _, report in ipairs(reports) do
    add(report[1])
  end
  for _, lot in ipairs(settled) do
    for i = 1, #lot[5], 2 do
      add(lot[5][i])
    end
  end
  for _, ask in ipairs(asks) do
    for _, name in ipairs(ask[1]) do
      add(name)
    end
  end
  local found = names[1] and call('HMGET', key('upstreams'), unpack(fields)) or {}
  context.totals = found[1] and settings_in(found[1]) or {}
  for i, name in ipairs(names) do
    local settings, panic = found[2 * i], found[2 * i + 1]
    context.upstreams[name] = settings and settings_in(settings) or nil
    context.panics[name] = panic and panic_in(panic) or nil
    missing[#missing + 1] = not context.upstreams[name] and name or nil
  end
  return missing
end

local function upstream_of(name)
  return context.upstreams[name]
end

--- Whether one of those that were read has prices.
local function has_prices()
  for _, settings in pairs(context.upstreams) do
    if settings.currency then
      return true
    end
  end
  return false
end

--- The budgets of all upstreams of a currency together.
local function total_budgets(currency)
  return context.totals[currency] or {}
end

--- The panic that an upstream is in, or nil.
local function panic_of(name, now)
  local panic = context.panics[name]
  local is_over = panic and panic.until_at ~= 0 and panic.until_at <= now
  return not is_over and panic or nil
end
