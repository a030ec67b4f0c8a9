--- What is to be done in other queues for flows and groups of this one.
-- states   none
-- keys     errands zset · flow, group hashes
-- args     now · from the so-manieth (0: the first) · at most so many
-- returns  now, then for each: errand · queue · job · what it is made of (packed; '' when it is to be
--          cancelled) · (name · state · result or error) … of its parents, or (what · number) … of its group
-- A job is not cancelled before it was sent.
--@flags no-writes
--@include now, key, graph, company
local COUNTS = { 'total', 'completed', 'dead', 'cancelled' }
local now = now_us(ARGV[1])

local function parents_of(flow, number)
  local packed, list = call('HGET', flow_key(flow), 'p:' .. number), {}
  for _, parent in ipairs(packed and cmsgpack.unpack(packed) or {}) do
    local node = math.abs(parent)
    local found = call('HMGET', flow_key(flow), 'v:' .. node, 's:' .. node, 'r:' .. node)
    local state = read_node(found[2]).state
    if parent > 0 or state == 'completed' then
      list[#list + 1] = cmsgpack.unpack(found[1])[3]
      list[#list + 1] = state
      list[#list + 1] = found[3] or ''
    end
  end
  return list
end

local function counts_of(group)
  local list = {}
  for _, name in ipairs(COUNTS) do
    list[#list + 1] = name
    list[#list + 1] = tonumber(call('HGET', group_key(group), name) or 0)
  end
  return list
end

local function describe(errand)
  local what, which, name, job = string.match(errand, '^(%w):([^:]+):([^:]+):(.+)$')
  if what == 'g' then
    local made = call('HGET', group_key(which), 'on:' .. name)
    return made and { errand, cmsgpack.unpack(made)[1], job, made, counts_of(which) }
  end
  local found = call('HMGET', flow_key(which), 'v:' .. name, 'j:' .. name)
  if not found[1] then
    return nil
  end
  local queue = cmsgpack.unpack(found[1])[1]
  if what == 'f' then
    return { errand, queue, job, found[2], parents_of(which, name) }
  elseif not call('ZSCORE', key('errands'), 'f' .. string.sub(errand, 2)) then
    return { errand, queue, job, '', {} }
  end
end

local list = { whole(now) }
for _, errand in ipairs(call('ZRANGE', key('errands'), ARGV[2], ARGV[2] + ARGV[3] - 1)) do
  list[#list + 1] = describe(errand) or { errand, '', '', '', {} }
end
return list
