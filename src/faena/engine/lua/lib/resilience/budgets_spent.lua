--- How much of each budget is used, in a period that is now or was before.
--@include safe_read, keys, upstream_settings, spending
--@exports declared_upstreams, budgets_spent
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

--- Who has spent most in a period, of a budget that each tenant has.
local function first_spender(period, name)
  return call('ZRANGE', key('spenders:' .. period .. '/' .. name), 0, 0, 'REV')[1] or ''
end

--- {upstream, or '' for all of a currency; currency; budget; period; tenant; spent; reserved; what a call costs} … of days and months;
-- nothing is reserved in a period that is not now. Without a tenant, budgets of each tenant are those of who has spent most.
local function budgets_spent(names, day, month, tenant, now)
  local rows, held, at, today = {}, reserved_now(now), { d = day, m = month }, periods_of(now)

  local function add(name, currency, scope, budget, micro)
    local period, whose = budget[1], ''
    if at[period] and at[period] ~= '' then
      if budget[6] == 1 then
        whose = tenant ~= '' and tenant or first_spender(at[period], name)
        scope = scope .. '/@' .. whose
      end
      local spent = spent_in(at[period], scope, name, budget[6] == 1 and whose or nil)
      local reserved = at[period] == today[period].name and held[scope] or 0
      rows[#rows + 1] = { name, currency, budget, at[period], whose, whole(spent), whole(reserved), micro }
    end
  end

  for _, name in ipairs(names) do
    local settings = upstream_of(name)
    for _, budget in ipairs(settings.budgets or {}) do
      add(name, settings.currency, 's/' .. name, budget, settings.call_micro or 0)
    end
  end
  for currency, budgets in pairs(context.totals) do
    for _, budget in ipairs(budgets) do
      add('', currency, 't/' .. currency, budget, 0)
    end
  end
  return rows
end
