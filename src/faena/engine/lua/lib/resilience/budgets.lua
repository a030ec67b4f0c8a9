--- Budgets: what calls may cost is reserved before they are made, and settled when they have ended.
--   reserved   scope -> what is reserved in it: s/<upstream>, s/<upstream>/@<tenant>, t/<currency>
--   lots       lot -> packed: needs {scope -> of each call} and left, of permits that were granted together
--   lot_ends   lot -> when its holder is taken for dead, and what is left of it comes back
-- A budget, as an upstream's settings or those of all upstreams of a currency have it: {period d | m, limit, is_hard 1|0,
-- soft share or 0, thresholds in percent, is_each_tenants 1|0}.
--@include safe_read, keys, journal, now, upstream_settings, spending, spending_stats, budget_events, feature_states
--@exports read_money, settle_lot, money_of, room_of_money, reserve_money, save_money
--@state reserved = {}       -- scope -> as read in this call
--@state is_reserved = {}    -- scopes whose sum has changed
--@state lots = {}           -- lot -> needs, left and, of a new one, ends_at; as it is after this call
--@state changed_lots = {}   -- those to be written, or to be removed if nothing is left
--@state periods = false
--@state used_up = {}        -- upstream -> until when what is spent leaves no room for another call
local MOST_RETURNED = 100
local LOOK_AGAIN_US = 1000000

local function periods_now()
  context.periods = context.periods or periods_of(now_us())
  return context.periods
end

local function reserved_in(scope)
  context.reserved[scope] = context.reserved[scope] or count_in(call('HGET', key('reserved'), scope), 0)
  return context.reserved[scope]
end

local function reserve(scope, by)
  context.reserved[scope] = math.max(0, reserved_in(scope) + by)
  context.is_reserved[scope] = true
end

--- Give back what `number` calls of a lot have reserved; all that is left without a number.
local function give_back(id, number)
  local lot = context.lots[id]
  context.changed_lots[id] = true
  if lot then
    number = math.min(number or lot.left, lot.left)
    for scope, need in pairs(lot.needs) do
      reserve(scope, -number * number_in(need, 0))
    end
    lot.left = lot.left - number
  end
end

local function read_lots(ids)
  for i, packed in ipairs(ids[1] and call('HMGET', key('lots'), unpack(ids)) or {}) do
    if packed then
      local lot = keep_kinds(unpacked(packed) or {}, { needs = 'table', left = 'number' })
      context.lots[ids[i]] = { needs = lot.needs or {}, left = lot.left or 0 }
    end
  end
end

--- Read what settled lots change, and give back what holders have left that are gone. Nothing is read where no upstream of
-- the call has a price.
local function read_money(settled, now)
  if not has_prices() then
    return
  end
  local ids = call('ZRANGE', key('lot_ends'), '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, MOST_RETURNED)
  local overdue = #ids
  for _, lot in ipairs(settled) do
    ids[#ids + 1] = lot[1]
  end
  read_lots(ids)
  for i = 1, overdue do
    give_back(ids[i])
  end
  read_metered(settled, periods_now())
end

--- Visit the budgets that a tenant's calls of an upstream draw on; none without a name.
local function each_budget(name, tenant, visit)
  local settings = name and upstream_of(name) or {}
  local scope = 's/' .. (name or '')
  for _, budget in ipairs(settings.budgets or {}) do
    local period, limit, is_hard, soft, thresholds, is_each = unpack(budget)
    if is_each ~= 1 then
      visit(scope, periods_now()[period], limit, is_hard == 1, soft, thresholds, nil, 'budget')
    elseif tenant ~= '' then
      visit(scope .. '/@' .. tenant, periods_now()[period], limit, is_hard == 1, soft, thresholds, tenant, 'tenant_budget')
    end
  end
  for _, budget in ipairs(settings.currency and total_budgets(settings.currency) or {}) do
    local period, limit, is_hard, soft, thresholds = unpack(budget)
    visit('t/' .. settings.currency, periods_now()[period], limit, is_hard == 1, soft, thresholds, nil, 'total_budget')
  end
end

--- The highest threshold that a sum has reached, in percent, or 0.
local function reached(thresholds, sum, limit)
  local highest = 0
  for _, percent in ipairs(thresholds) do
    if sum * 100 >= percent * limit and percent > highest then
      highest = percent
    end
  end
  return highest
end

--- While the calls of an upstream, as they are estimated, cost more than is left of a budget, an event has told so, and
-- features that depend on the upstream are in trouble.
local function note_used_up(name, tenant, scope, period, spent, limit)
  local settings = upstream_of(name)
  local micro = settings.call_micro or 1
  if spent + micro <= limit then
    return
  end
  tell_used_up(scope, period.name, limit, settings.currency, spent, name, micro)
  if not tenant then
    context.used_up[name] = math.max(context.used_up[name] or 0, period.ends_at)
  end
end

--- Tell of thresholds that `micro` more has made a tenant's calls of an upstream reach, and of budgets that are used up.
local function look_at_budgets(name, tenant, micro)
  each_budget(name, tenant, function(scope, period, limit, is_hard, _, thresholds, whose)
    local spent = spent_in(period.name, scope, name, whose)
    local percent = reached(thresholds, spent, limit)
    if percent > reached(thresholds, spent - micro, limit) then
      tell_threshold(scope, period.name, percent, limit, upstream_of(name).currency)
    end
    if is_hard then
      note_used_up(name, whose, scope, period, spent, limit)
    end
  end)
end

--- Calls of a lot have ended: count what they have cost, and give back what was reserved for them.
-- costs: upstream, micro, ….
local function settle_lot(id, ended, tenant, task, costs)
  if ended > 0 then
    give_back(id, ended)
  end
  for i = 1, #costs, 2 do
    local name, micro = costs[i], costs[i + 1]
    local settings = upstream_of(name)
    if micro > 0 and settings.currency then
      meter(periods_now(), name, settings.currency, tenant, task, micro)
      look_at_budgets(name, tenant, micro)
    end
  end
end

--- What each of some jobs would reserve, by scope, and the budgets that have a say in it; nil where they cost nothing.
local function money_of(needed, tenant, estimates)
  if not estimates[1] then
    return nil
  end
  local money, counted = { needs = {}, budgets = {} }, {}
  for i, name in ipairs(needed) do
    local micro = estimates[i] or 0
    each_budget(micro > 0 and name, tenant, function(scope, period, limit, is_hard, soft, _, whose, reason)
      if not counted[scope .. ' ' .. name] then
        counted[scope .. ' ' .. name] = true
        money.needs[scope] = (money.needs[scope] or 0) + micro
      end
      money.budgets[#money.budgets + 1] = { scope = scope, period = period, limit = limit, is_hard = is_hard, soft = soft,
                                            tenant = whose, reason = reason, name = name }
    end)
  end
  return money
end

--- How many jobs there is money for, whose budget is used up first, why and until when; and whether a soft limit is
-- passed.
local function room_of_money(money)
  local room, name, reason, until_at, is_soft = 2 ^ 53, '', '', 0, 0
  for _, budget in ipairs(money and money.budgets or {}) do
    local need = money.needs[budget.scope]
    local spent = spent_in(budget.period.name, budget.scope, budget.name, budget.tenant)
    local used = spent + reserved_in(budget.scope)
    local wide = math.max(0, math.floor((budget.limit - used) / need))
    if budget.is_hard and wide < room then
      local may_come_back = spent + need <= budget.limit   -- what is reserved may not be spent
      room, name = wide, budget.name
      reason = not may_come_back and budget.reason or budget.tenant and 'tenant_reserved' or 'reserved'
      until_at = may_come_back and now_us() + LOOK_AGAIN_US or budget.period.ends_at
    end
    if budget.is_hard then
      note_used_up(budget.name, budget.tenant, budget.scope, budget.period, spent, budget.limit)
    end
    if budget.soft > 0 and used + need > budget.soft * budget.limit then
      is_soft = 1
    end
  end
  return room, name, reason, until_at, is_soft
end

--- Reserve for so many jobs what each of them needs, until an instant.
local function reserve_money(money, id, number, until_at)
  if number < 1 or not money or not next(money.needs) then
    return
  end
  for scope, need in pairs(money.needs) do
    reserve(scope, number * need)
  end
  context.lots[id], context.changed_lots[id] = { needs = money.needs, left = number, ends_at = until_at }, true
end

--- Run a command last for all that it is about, if there is any.
local function write_all(verb, name, words)
  if words[1] then
    write_last(verb, key(name), unpack(words))
  end
end

local function save_lots()
  local kept, ends, gone = {}, {}, {}
  for id in pairs(context.changed_lots) do
    local lot = context.lots[id]
    if lot and lot.left > 0 then
      local last = #kept
      kept[last + 1], kept[last + 2] = id, cmsgpack.pack({ needs = lot.needs, left = lot.left })
      if lot.ends_at then
        ends[#ends + 1], ends[#ends + 2] = whole(lot.ends_at), id
      end
    else
      gone[#gone + 1] = id
    end
  end
  write_all('HSET', 'lots', kept)
  write_all('HDEL', 'lots', gone)
  write_all('ZADD', 'lot_ends', ends)
  write_all('ZREM', 'lot_ends', gone)
end

local function save_money()
  for name, until_at in pairs(context.used_up) do
    feature_trouble(name, 'budget', until_at)
  end
  local sums, none = {}, {}
  for scope in pairs(context.is_reserved) do
    local sum = context.reserved[scope]
    if sum > 0 then
      sums[#sums + 1], sums[#sums + 2] = scope, whole(sum)
    else
      none[#none + 1] = scope
    end
  end
  write_all('HSET', 'reserved', sums)
  write_all('HDEL', 'reserved', none)
  save_lots()
  save_metered()
end
