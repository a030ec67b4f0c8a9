--- What a call did, told once for the whole batch: minute counters and one event.
--@include read, key
local STATS_TTL_S = 30 * 86400

--@each tally, told = {}, {}
local tally   -- counter -> number
local told    -- event field, ids, event field, ids, …

local function count(name, number)
  if number > 0 then
    tally[name] = (tally[name] or 0) + number
  end
end

--- Count `ids` under `name` and put them into the batch's event.
local function tell(name, ids)
  if #ids > 0 then
    count(name, #ids)
    told[#told + 1] = name
    told[#told + 1] = table.concat(ids, ' ')
  end
end

local function flush_tally(now, kept, worker)
  local minute = key('stats:' .. whole(math.floor(now / 60000000)))
  local fresh = false
  for name, number in pairs(tally) do
    fresh = bump(minute, name, number) == number or fresh
  end
  if fresh then
    call('EXPIRE', minute, STATS_TTL_S)
  end
  if #told > 0 and kept and kept > 0 then
    call('XADD', key('events'), 'MAXLEN', '~', kept, '*', 'at', now, 'worker', worker, unpack(told))
  end
end
