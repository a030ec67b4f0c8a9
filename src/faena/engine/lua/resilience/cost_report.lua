--- What calls to upstreams have cost in a day or a month, and how much of budgets that is.
-- states   none
-- keys     upstreams, forgotten, reserved, lots, spent hashes · lot_ends, spenders sorted sets
--@args     day?, month?, top
--          day such as 20261116, or month such as 202611; the present month without either. top is how many tenants to name
-- returns  packed: now · day or '' · month · {field, micro …} of the period · the same of the month · {day, currency, micro …}
--          … · {upstream, currency, how many tenants, {tenant, micro …}} … · as budget_views has them
--@flags no-writes
--@include now, keys, check_arguments, upstream_settings, budgets_spent, spending
local most = size_of(top, 'top')
if day ~= '' then
  month = string.sub(day, 1, 6)
elseif month == '' then
  month = periods_of(now).m.name
end
local period = day ~= '' and day or month
local names, currency_of, priced = declared_upstreams(), forgotten_upstreams(), {}
for _, name in ipairs(names) do
  currency_of[name] = upstream_of(name).currency or currency_of[name]
end
for name in pairs(currency_of) do
  priced[#priced + 1] = name
end
table.sort(priced)

local function currencies()
  local seen, found = {}, {}
  for _, name in ipairs(priced) do
    local currency = currency_of[name]
    if not seen[currency] then
      seen[currency], found[#found + 1] = true, currency
    end
  end
  return found
end

--- What was spent on each day of the month, by currency.
local function trend()
  local codes, fields, days = currencies(), {}, {}
  for i, currency in ipairs(codes) do
    fields[i] = 't/' .. currency
  end
  for number = 1, fields[1] and 31 or 0 do
    local name, row = month .. string.format('%02d', number), {}
    for i, micro in ipairs(call('HMGET', key('spent:' .. name), unpack(fields))) do
      if micro then
        row[#row + 1], row[#row + 2] = codes[i], micro
      end
    end
    if row[1] then
      days[#days + 1] = { name, unpack(row) }
    end
  end
  return days
end

local services = {}
for i, name in ipairs(priced) do
  local spenders = key('spenders:' .. period .. '/' .. name)
  local top_ones = most > 0 and call('ZRANGE', spenders, 0, most - 1, 'REV', 'WITHSCORES') or {}
  services[i] = { name, currency_of[name], call('ZCARD', spenders), top_ones }
end
return cmsgpack.pack({
  now, day, month, call('HGETALL', key('spent:' .. period)), call('HGETALL', key('spent:' .. month)), trend(), services,
  budgets_spent(names, day, month, '', now),
})
