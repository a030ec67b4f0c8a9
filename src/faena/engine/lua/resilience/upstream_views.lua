--- How upstreams are: breaker, panic, use of limits and budgets, and tenants whose breakers are not closed.
-- states   none
-- keys     upstreams, troubled, reserved, lots, spent hashes · lot_ends, spenders sorted sets · breaker, claims strings
--@args     tenant?, upstream...
--          tenant '' for what counts for all; without an upstream all that are declared
-- returns  now · packed for each that is known: name, whether its breakers are tenants' own, {state, since, {calls, failed,
--          slow, failed in a row}, next probe, openings in a row, no calls until}, panic {until, reason, by, at} or {}, {is the tenant's,
--          max, window_us, used, opens at} … of limits, {tenant, state, since} …, how many these are, its
--          budgets and those of its currency, as budget_views has them, the limits that each tenant has
--@flags no-writes
--@include now, keys, breaker, upstream_settings, budgets_spent, packed_window, sliding_window
local SCANS, PER_SCAN, MOST_TENANTS = 20, 500, 50

local function names_asked()
  local names = {}
  for i = first_upstream, #ARGV do
    names[#names + 1] = ARGV[i]
  end
  if #names == 0 then
    for _, name in ipairs(call('HKEYS', key('upstreams'))) do
      names[#names + 1] = not string.find(name, '^[!$]') and name or nil
    end
    table.sort(names)
  end
  return names
end

--- Upstream -> scope, state … of tenants, and how many.
local function troubled_tenants()
  local found, cursor = {}, '0'
  for _ = 1, SCANS do
    local page = call('HSCAN', key('troubled'), cursor, 'COUNT', PER_SCAN)
    for i = 1, #page[2], 2 do
      local name = string.match(page[2][i], '^(.-)/@')
      if name then
        local scopes = found[name] or {}
        found[name], scopes[#scopes + 1] = scopes, page[2][i]
      end
    end
    cursor = page[1]
    if cursor == '0' then
      break
    end
  end
  return found
end

local function facts_of(scope, settings)
  local packed = call('GET', key('breaker:' .. scope))
  read_breaker(scope, settings, packed)
  return facts_of_breaker(breaker_of(scope), now), packed
end

local function add_uses(uses, text, lane, is_tenants)
  for _, window in ipairs(text and windows_of(text, lane) or {}) do
    look_into(window, call('GET', key(window.name)), now)
    local is_full = window.sum >= window.max
    local opens_at = is_full and (window.oldest or now) + window.per_us or 0
    uses[#uses + 1] = { is_tenants, window.max, window.per_us, window.sum, opens_at }
  end
end

local function tenants_of(name, settings, scopes)
  local tenants = {}
  table.sort(scopes)
  for i = 1, math.min(#scopes, MOST_TENANTS) do
    local facts, is_there = facts_of(scopes[i], settings)
    if is_there and facts[1] ~= 'closed' then
      tenants[#tenants + 1] = { string.sub(scopes[i], #name + 3), facts[1], facts[2] }
    end
  end
  return tenants
end

local function view_of(name, troubled, budgets)
  local settings, panic, uses = upstream_of(name), panic_of(name, now), {}
  add_uses(uses, settings.limits, 'u/' .. name, false)
  if tenant ~= '' then
    add_uses(uses, settings.tenant_limits, 'u/' .. name .. '/@' .. tenant, true)
  end
  local facts = facts_of(scope_of(settings, name, tenant), settings)
  local tenants = tenants_of(name, settings, troubled)
  local number = #troubled > MOST_TENANTS and #troubled or #tenants
  local told = panic and { panic.until_at, panic.reason, panic.by, panic.at } or {}
  return cmsgpack.pack({ name, settings.per_tenant and true or false, facts, told, uses, tenants, number, budgets, settings.tenant_limits or '' })
end

local names, reports, views = names_asked(), {}, { now }
for i, name in ipairs(names) do
  reports[i] = { name }
end
read_upstreams(reports, {}, {})
local known = {}
for _, name in ipairs(names) do
  known[#known + 1] = upstream_of(name) and name or nil
end
local troubled, budgets = troubled_tenants(), budgets_of(known, tenant, now)
for _, name in ipairs(known) do
  views[#views + 1] = view_of(name, troubled[name] or {}, budgets[name])
end
return views
