--- Divides a queue's max_running, back-pressure bounds and limits among its shards.
-- Retention is not divided: tenants are not spread evenly, and a busy shard would lose what the queue may keep.
--@exports divide_limits
local DIVIDED = { max_running = true, soft = true, hard = true }

--- The part of `number` that is this shard's; all of them add up to it.
local function part_of(conf, number)
  local rest = number % conf.shards
  return (number - rest) / conf.shards + (conf.shard < rest and 1 or 0)
end

--- Replace the bounds of the whole queue by this shard's parts.
local function divide_limits(conf)
  for name in pairs(DIVIDED) do
    conf[name] = conf[name] and part_of(conf, conf[name])
  end
  conf.limits = conf.limits and string.gsub(conf.limits, '(%d+)/', function(max)
    return string.format('%.0f/', part_of(conf, tonumber(max)))
  end)
end
