--- Counts what calls have cost. A sum is read once in a call and written once, however many calls have ended.
--@include safe_read, keys, journal, upstream_settings, spending
--@exports read_metered, meter, save_metered
--@state metered = {}   -- key -> verb that writes it, whether it is new, and its sums by field
local KEPT_S = 90 * 86400
local MONTH_S = 31 * 86400

local function fields_of(upstream, currency, task)
  return { 's/' .. upstream, 't/' .. currency, task ~= '' and 'k/' .. upstream .. '/' .. task or nil }
end

--- The fields and, by upstream, the tenants whose sums some settled lots change.
local function changed_by(settled)
  local fields, tenants, seen = {}, {}, {}

  local function add(list, name, at)
    if not seen[at] then
      seen[at], list[#list + 1] = true, name
    end
  end

  for _, lot in ipairs(settled) do
    local _, _, tenant, task, costs = unpack(lot)
    for i = 1, #costs, 2 do
      local name, currency = costs[i], upstream_of(costs[i]).currency
      if costs[i + 1] > 0 and currency then
        for _, field in ipairs(fields_of(name, currency, task)) do
          add(fields, field, field)
        end
        tenants[name] = tenants[name] or {}
        if tenant ~= '' then
          add(tenants[name], tenant, 's/' .. name .. '/@' .. tenant)
        end
      end
    end
  end
  return fields, tenants
end

--- Read all sums that settled lots change, in one command for each key.
local function read_metered(settled, periods)
  local fields, tenants = changed_by(settled)

  local function take_in(stored, names, prefix)
    for i, name in ipairs(names) do
      context.spent[prefix .. name] = number_in(stored[i], 0)
    end
  end

  for _, period in pairs(fields[1] and periods or {}) do
    take_in(call('HMGET', key('spent:' .. period.name), unpack(fields)), fields, period.name .. ' ')
    for upstream, names in pairs(tenants) do
      if names[1] then
        local stored = call('ZMSCORE', key('spenders:' .. period.name .. '/' .. upstream), unpack(names))
        take_in(stored, names, period.name .. ' s/' .. upstream .. '/@')
      end
    end
  end
end

local function add(name, verb, field, at, micro)
  local into = context.metered[name] or { verb = verb, sums = {} }
  local before = context.spent[at]
  into.is_new = into.is_new or before == 0
  into.sums[field], context.spent[at], context.metered[name] = before + micro, before + micro, into
end

--- Count what a tenant's calls of a task have cost; `read_metered` has read the sums.
local function meter(periods, upstream, currency, tenant, task, micro)
  for _, period in pairs(periods) do
    for _, field in ipairs(fields_of(upstream, currency, task)) do
      add(key('spent:' .. period.name), 'HSET', field, period.name .. ' ' .. field, micro)
    end
    if tenant ~= '' then
      local at = period.name .. ' s/' .. upstream .. '/@' .. tenant
      add(key('spenders:' .. period.name .. '/' .. upstream), 'ZADD', tenant, at, micro)
    end
  end
end

local function save_metered()
  for name, into in pairs(context.metered) do
    local words = { into.verb, name }
    for field, sum in pairs(into.sums) do
      local is_scored, last = into.verb == 'ZADD', #words
      words[last + 1], words[last + 2] = is_scored and whole(sum) or field, is_scored and field or whole(sum)
    end
    write_last(unpack(words))
    if into.is_new then
      write_last('EXPIRE', name, KEPT_S + MONTH_S)
    end
  end
end
