--- How much of each budget is used, in a period that is now or was before.
--@include safe_read, keys, upstream_settings, spending
--@exports declared_upstreams, budgets_spent, budgets_of
local MOST_OVERDUE = 100

--- The names of all upstreams, whose settings are read.
local function declared_upstreams()
  local names, reports = {}, {}
  for _, name in ipairs(call('HKEYS', key('upstreams'))) do
    if not string.find(name, '^[!$]') then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  for i, name in ipairs(names) do
    reports[i] = { name }
  end
  read_upstreams(reports, {}, {})
  return names
end

--- What is reserved, by scope, without what holders have left that are taken for dead.
local function reserved_now(now)
  local flat, sums = call('HGETALL', key('reserved')), {}
  for i = 1, #flat, 2 do
    sums[flat[i]] = count_in(flat[i + 1], 0)
  end
  local gone = call('ZRANGE', key('lot_ends'), '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, MOST_OVERDUE)
  for _, packed in ipairs(gone[1] and call('HMGET', key('lots'), unpack(gone)) or {}) do
    local lot = keep_kinds(packed and unpacked(packed) or {}, { needs = 'table', left = 'number' })
    for scope, need in pairs(lot.needs or {}) do
      sums[scope] = math.max(0, (sums[scope] or 0) - (lot.left or 0) * number_in(need, 0))
    end
  end
  return sums
end

--- The tenant that has spent most in a period, of a budget that each tenant has.
local function first_spender(period, name)
  return call('ZRANGE', key('spenders:' .. period .. '/' .. name), 0, 0, 'REV')[1] or ''
end

--- The names of the day and the month to look at (either may be ''), whose budgets, and what is reserved in them.
local function view_at(day, month, tenant, now)
  local today, held = periods_of(now), reserved_now(now)
  return {
    names = { d = day, m = month }, tenant = tenant,
    held = { d = day == today.d.name and held or {}, m = month == today.m.name and held or {} },
  }
end

local function add_row(rows, view, name, currency, scope, budget, micro)
  local period, whose = view.names[budget[1]] or '', ''
  if period == '' then
    return
  end
  if budget[6] == 1 then
    whose = view.tenant ~= '' and view.tenant or first_spender(period, name)
    scope = scope .. '/@' .. whose
  end
  local spent = spent_in(period, scope, name, budget[6] == 1 and whose or nil)
  local reserved = view.held[budget[1]][scope] or 0
  rows[#rows + 1] = { name, currency, budget, period, whose, whole(spent), whole(reserved), micro }
end

local function add_own(rows, view, name)
  local settings = upstream_of(name)
  for _, budget in ipairs(settings.budgets or {}) do
    add_row(rows, view, name, settings.currency, 's/' .. name, budget, settings.call_micro or 0)
  end
end

--- {upstream, or '' for all of a currency; currency; budget; period; tenant; spent; reserved; what a call costs} … of days
-- and months; nothing is reserved in a period that is not now. Without a tenant, budgets of each tenant are those of the
-- tenant that has spent most.
local function budgets_spent(names, day, month, tenant, now)
  local rows, view = {}, view_at(day, month, tenant, now)
  for _, name in ipairs(names) do
    add_own(rows, view, name)
  end
  for currency, budgets in pairs(context.totals) do
    for _, budget in ipairs(budgets) do
      add_row(rows, view, '', currency, 't/' .. currency, budget, 0)
    end
  end
  return rows
end

--- The same now, by upstream: the budgets that its calls draw on, those of its currency included.
local function budgets_of(names, tenant, now)
  local found, today, view = {}, periods_of(now), nil
  for _, name in ipairs(names) do
    local settings = upstream_of(name)
    local currency = settings.currency
    found[name] = {}
    if currency then
      view = view or view_at(today.d.name, today.m.name, tenant, now)
      add_own(found[name], view, name)
      for _, budget in ipairs(total_budgets(currency)) do
        add_row(found[name], view, '', currency, 't/' .. currency, budget, settings.call_micro or 0)
      end
    end
  end
  return found
end
