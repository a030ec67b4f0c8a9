--- What an audit compares: jobs with every place that names them, lanes, keys, or the totals.
-- states   none
-- keys     all
--@args     what, name...
--          what jobs | lanes | flows | keys, with their names | totals
-- returns  jobs: for each (state …) · mark or '' · leader or '' · (place …) that knows the id · lane or
--          '' · chain or '' · status at the desk or '' · (index …) it stands in · (index …) it should
--          lanes: for each live jobs · running ones · ready ones · (set …) it stands in
--          flows: for each ttl_ms of its hash, -2 without one · (set …) it stands in
--          keys: for each type · ttl_ms, negative without one · text, or a sorted set's size, or ''
--          totals: (column · number) … · clock as name, value … · (window · sum of its list) …
--@flags no-writes
--@include job_state, job_metadata, spec_line, lane, dead_index, keys
local PLACES = { 'specs', 'leases', 'marks', 'results', 'waiters', 'desk' }

--- The live job behind which `id` waits blocked.
local function leader_of(id, mark, chain)
  if chain and call('ZSCORE', key('tail:' .. chain), id) then
    return call('HGET', key('heads'), chain) or ''
  end
  local leader = mark.u and call('GET', key('unique:' .. mark.m .. ':' .. mark.u))
  local its = leader and marks_of({ leader })[leader]
  return its and its.n == id and leader or ''
end

--- Its status at the desk, and the indexes in which it stands and does not.
local function desk_facts(id)
  local record, there, missing = records_of({ id })[id], {}, {}
  local at = call('ZSCORE', key('dead'), id)
  for _, name in ipairs(record and indexes_of(record) or {}) do
    local list = call('ZSCORE', index_key(name), id) == at and there or missing
    list[#list + 1] = 'desk:' .. name
  end
  return record and record.s or '', there, missing
end

local function job(id)
  local states, places, packed = {}, {}, call('HGET', key('marks'), id)
  for _, state in ipairs(STATES) do
    states[#states + 1] = call('ZSCORE', key(state), id) and state or nil
  end
  for _, place in ipairs(PLACES) do
    places[#places + 1] = call('HEXISTS', key(place), id) == 1 and place or nil
  end
  if call('EXISTS', key('info:' .. id)) == 1 then
    places[#places + 1] = 'info'
  end
  local spec = call('HGET', key('specs'), id)
  local lane, chain = lane_in(spec)
  for place, owner in pairs({ lane = lane, tail = chain, aside = key_in(spec) }) do
    places[#places + 1] = call('ZSCORE', key(place .. ':' .. owner), id) and place or nil
  end
  if chain and call('HGET', key('heads'), chain) == id then
    places[#places + 1] = 'head'
  end
  if call('ZSCORE', key('desk_due'), id) then
    places[#places + 1] = 'due'
  end
  local leader = leader_of(id, packed and cmsgpack.unpack(packed) or {}, chain)
  return { states, packed or '', leader, places, lane or '', chain or '', desk_facts(id) }
end

--- Which of two sorted sets a name stands in.
local function sets_of(name, one, other)
  local sets = {}
  for _, set in ipairs({ one, other }) do
    sets[#sets + 1] = call('ZSCORE', key(set), name) and set or nil
  end
  return sets
end

local function lane_facts(lane)
  local count = tonumber(call('HGET', key('lanes'), lane) or 0)
  return { math.floor(count / LIVE), count % LIVE, call('ZCARD', key('lane:' .. lane)),
           sets_of(lane, 'ring', 'parked') }
end

local function flow_facts(flow)
  return { call('PTTL', key('flow:' .. flow)), sets_of(flow, 'flows', 'flows_done') }
end

local function describe(name)
  local kind = call('TYPE', key(name)).ok
  local text = kind == 'string' and call('GET', key(name)) or kind == 'zset' and whole(call('ZCARD', key(name)))
  return { kind, call('PTTL', key(name)), text or '' }
end

local function totals()
  local numbers, windows, clock = {}, {}, call('HGETALL', key('clock'))
  for _, state in ipairs(STATES) do
    table.insert(numbers, state)
    table.insert(numbers, call('ZCARD', key(state)))
  end
  for _, place in ipairs(PLACES) do
    table.insert(numbers, place)
    table.insert(numbers, call('HLEN', key(place)))
  end
  for i = 1, #clock, 2 do
    local window, sum = string.match(clock[i], '^window:%d+$'), 0
    for _, entry in ipairs(window and call('LRANGE', key(window), 0, -1) or {}) do
      sum = sum + tonumber(string.match(entry, ' (%d+)$'))
    end
    if window and call('EXISTS', key(window)) == 1 then
      table.insert(windows, window)
      table.insert(windows, sum)
    end
  end
  return { numbers, clock, windows }
end

if what == 'totals' then
  return totals()
end
local readers, answers = { jobs = job, lanes = lane_facts, flows = flow_facts, keys = describe }, {}
for i = first_name, #ARGV do
  answers[#answers + 1] = readers[what](ARGV[i])
end
return answers
