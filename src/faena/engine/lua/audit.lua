--- What an audit compares: some jobs with every place that names them, some keys, or the totals.
-- states   none
-- keys     all
-- args     jobs · id …  |  keys · name …  |  totals
-- returns  jobs: for each (state …) · mark or '' · leader or '' · (place …) that knows the id
--          keys: for each type · ttl_ms, negative without one · text or ''
--          totals: (column · number) … · clock as name, value … · (window · sum of its list) …
--@flags no-writes
--@include state, mark
local PLACES = { 'specs', 'leases', 'marks', 'results', 'waiters' }

--- The live job behind which `id` waits blocked.
local function leader_of(id, mark)
  local leader = mark.u and call('GET', key('unique:' .. mark.m .. ':' .. mark.u))
  local its = leader and marks_of({ leader })[leader]
  return its and its.n == id and leader or ''
end

local function job(id)
  local states, places, packed = {}, {}, call('HGET', key('marks'), id)
  for _, state in ipairs(STATES) do
    if call('ZSCORE', key(state), id) then
      states[#states + 1] = state
    end
  end
  for _, place in ipairs(PLACES) do
    if call('HEXISTS', key(place), id) == 1 then
      places[#places + 1] = place
    end
  end
  if call('EXISTS', key('info:' .. id)) == 1 then
    places[#places + 1] = 'info'
  end
  return { states, packed or '', packed and leader_of(id, cmsgpack.unpack(packed)) or '', places }
end

local function describe(name)
  local kind = call('TYPE', key(name)).ok
  return { kind, call('PTTL', key(name)), kind == 'string' and call('GET', key(name)) or '' }
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

if ARGV[1] == 'totals' then
  return totals()
end
local read, answers = ARGV[1] == 'jobs' and job or describe, {}
for i = 2, #ARGV do
  answers[i - 1] = read(ARGV[i])
end
return answers
