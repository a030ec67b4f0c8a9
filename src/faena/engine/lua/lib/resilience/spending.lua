--- What calls to upstreams have cost, in whole millionths of a currency.
--   spent:<period>               s/<upstream>, k/<upstream>/<task>, t/<currency> -> sum; a period is a day or a month
--   spenders:<period>/<upstream> tenant -> sum
--   forgotten                    upstream -> currency of its costs, of those whose settings were removed
--@include safe_read, keys, period
--@exports periods_of, spent_in, keep_currency, forgotten_upstreams
--@state spent = {}   -- as read in this call: "period scope" -> sum
local KEPT_S = 121 * 86400   -- 90 days after the end of a month

--- The day and the month of an instant, each with its name and its end.
local function periods_of(now)
  local day, day_ends = day_of(now)
  local month, month_ends = month_of(now)
  return { d = { name = day, ends_at = day_ends }, m = { name = month, ends_at = month_ends } }
end

--- What was spent in a period: by an upstream 's/<name>', in a currency 't/<code>', for a tenant of an upstream.
local function spent_in(period, scope, upstream, tenant)
  local at = period .. ' ' .. scope
  if not context.spent[at] then
    local stored
    if tenant then
      stored = call('ZSCORE', key('spenders:' .. period .. '/' .. upstream), tenant)
    else
      stored = call('HGET', key('spent:' .. period), scope)
    end
    context.spent[at] = number_in(stored, 0)
  end
  return context.spent[at]
end

--- The settings of an upstream are removed, and its costs are still reported.
local function keep_currency(upstream, currency)
  if type(currency) == 'string' then
    call('HSET', key('forgotten'), upstream, currency)
    call('EXPIRE', key('forgotten'), KEPT_S)
  end
end

--- Upstream -> currency, of those whose settings were removed.
local function forgotten_upstreams()
  local flat, currencies = call('HGETALL', key('forgotten')), {}
  for i = 1, #flat, 2 do
    currencies[flat[i]] = flat[i + 1]
  end
  return currencies
end
