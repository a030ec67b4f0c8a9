--- What events tell of budgets, each once in a period.
--   warned:<period>   scope -> the highest threshold that was told · !scope -> the budget that was told to be used up, so that a
--                     larger one is told again
--@include safe_read, keys, upstream_event
--@exports tell_threshold, tell_used_up
--@state budgets_told = {}   -- "period field" of those that need no second look in this call
local KEPT_S = 70 * 86400
local MICRO = 1000000

--- An amount such as 12.30 USD: exact, with two decimals at least.
local function amount_text(micro, currency)
  local decimals = string.format('%06d', micro % MICRO)
  local more = string.gsub(string.sub(decimals, 3), '0+$', '')
  return whole(math.floor(micro / MICRO)) .. '.' .. string.sub(decimals, 1, 2) .. more .. ' ' .. currency
end

--- A budget such as 10.00 USD for 2026-11-18.
local function budget_text(limit, currency, period)
  local dashed = string.gsub(period, '^(%d%d%d%d)(%d%d)(%d*)$', '%1-%2-%3')
  return amount_text(limit, currency) .. ' for ' .. string.gsub(dashed, '%-$', '')
end

--- By whom, where a budget is not that of an upstream.
local function spender_text(scope)
  local tenant = string.match(scope, '/@(.*)$')
  if tenant then
    return ' by tenant ' .. tenant
  end
  return string.sub(scope, 1, 2) == 't/' and ' by all upstreams' or ''
end

--- Whether a number is larger than what was told before in this period; if so, it is told now.
local function is_new(period, field, number)
  local warned = key('warned:' .. period)
  if number <= count_in(call('HGET', warned, field), 0) then
    return false
  end
  call('HSET', warned, field, whole(number))
  call('EXPIRE', warned, KEPT_S)
  return true
end

--- Tell of a threshold.
local function tell_threshold(scope, period, percent, limit, currency)
  if is_new(period, scope, percent) then
    local budget = budget_text(limit, currency, period)
    tell_upstream('budget_threshold', string.sub(scope, 3), percent .. '% of ' .. budget .. ' is spent' .. spender_text(scope))
  end
end

--- Tell of a budget in which there is no room for another call of an upstream as it is estimated.
local function tell_used_up(scope, period, limit, currency, spent, name, micro)
  local field = '!' .. scope
  if context.budgets_told[period .. ' ' .. field] then
    return
  end
  context.budgets_told[period .. ' ' .. field] = true
  if is_new(period, field, limit) then
    tell_upstream('budget_used_up', string.sub(scope, 3), string.format('%s is used up%s: %s is spent, and a call of %s may cost %s',
      budget_text(limit, currency, period), spender_text(scope), amount_text(spent, currency), name, amount_text(micro, currency)))
  end
end
