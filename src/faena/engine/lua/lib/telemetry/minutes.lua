--- What was counted in a shard, by minute, by hour and in all.
--   stats:<minute>      counter -> number · task:<name> -> what workers have measured of its jobs, packed · the same
--                       with `=` before the name: of the minute, what is added to its hour and to the totals
--   stats_hour:<hour>   the same, of its minutes that are over
--   totals              counter -> number, of all minutes that are over · open, the minute that is counted now ·
--                       from:<shard> -> packed totals of a shard that is about to be retired
-- Of a task: { attempts begun, jobs completed, attempts to be retried, jobs dead, waits, runs, totals }; each of the
-- last three a histogram { sum, bucket, number, bucket, number, … } as in telemetry/histogram.py.
-- Everything is counted in the minute of the call. The first count of another minute adds this one to its hour and
-- to the totals, in the same step. If the clock is put back, a minute that was added is counted on, and what is new
-- in it is added with the next minute.
--@include safe_read, keys
--@exports minute_of, count_minute, add_task, close_minutes, totals_now, adopt_totals
local MINUTE_US = 60000000
local MINUTES_TTL_S, HOURS_TTL_S, TOTALS_TTL_S = 2 * 86400, 30 * 86400, 400 * 86400
local TASK, ADDED = '^task:', '='

local minute_at, minute_name = 0, ''   -- kept from call to call: what the minute is called

local function minute_of(now)
  local minute = math.floor(now / MINUTE_US)
  if minute ~= minute_at then
    minute_at, minute_name = minute, 'stats:' .. whole(minute)
  end
  return key(minute_name)
end

local function is_number(value)
  return type(value) == 'number' and value >= 0 and value < 2 ^ 62
end

local function is_histogram(list)
  for i = 1, type(list) == 'table' and math.max(1, #list) or 0 do
    if not is_number(list[i]) then
      return false
    end
  end
  return type(list) == 'table'
end

local function merged(known, added)
  local counts, all, at = {}, { known[1] + added[1] }, 1
  for i = 2, #known - 1, 2 do
    counts[known[i]] = known[i + 1]
  end
  for i = 2, #added - 1, 2 do
    counts[added[i]] = (counts[added[i]] or 0) + added[i + 1]
  end
  for bucket, number in pairs(counts) do
    all[at + 1], all[at + 2], at = bucket, number, at + 2
  end
  return all
end

--- What was measured of a task, or nil where it cannot be read.
local function measured_in(task)
  for i = 1, 7 do
    local is_good = i <= 4 and is_number or is_histogram
    if type(task) ~= 'table' or not is_good(task[i]) then
      return nil
    end
  end
  return task
end

--- Add what was measured of a task to a minute or an hour.
local function add_task(hash, name, task)
  local added, known = measured_in(task), measured_in(unpacked(call('HGET', hash, name) or ''))
  if added and known then
    for i = 1, 7 do
      known[i] = i <= 4 and known[i] + added[i] or merged(known[i], added[i])
    end
  end
  known = known or added
  if known then
    call('HSET', hash, name, cmsgpack.pack(known))
  end
end

local function is_added(name)
  return string.sub(name, 1, 1) == ADDED
end

--- Add what is new in a minute to its hour and to the totals.
local function roll_up(minute)
  local from, hour = key('stats:' .. whole(minute)), key('stats_hour:' .. whole(math.floor(minute / 60)))
  local fields = call('HGETALL', from)
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    if string.find(name, TASK) then
      add_task(hour, name, unpacked(value))
      add_task(from, ADDED .. name, unpacked(value))
      call('HDEL', from, name)
    elseif not is_added(name) then
      local number = count_in(value, 0)
      bump(hour, name, number)
      bump(key('totals'), name, number)
      bump(from, ADDED .. name, number)
      call('HDEL', from, name)
    end
  end
  call('EXPIRE', hour, HOURS_TTL_S)
  call('EXPIRE', from, MINUTES_TTL_S)
end

--- Called with the first count of each counter in a minute, or since the minute was added.
local function count_minute(now)
  local minute, totals = math.floor(now / MINUTE_US), key('totals')
  call('EXPIRE', minute_of(now), HOURS_TTL_S)
  local open = count_in(call('HGET', totals, 'open'))
  if open ~= minute then
    if open then
      roll_up(open)
    end
    call('HSET', totals, 'open', minute)
    call('EXPIRE', totals, TOTALS_TTL_S)
  end
end

--- Nothing more is counted here: the shard is given up.
local function close_minutes()
  local open = count_in(call('HGET', key('totals'), 'open'))
  if open then
    roll_up(open)
  end
  call('UNLINK', key('totals'))
end

local function add_counters(sums, fields)
  for i = 1, #fields, 2 do
    local is_counter = not string.find(fields[i], TASK) and not is_added(fields[i])
    local number = is_counter and count_in(fields[i + 1])
    if number then
      sums[fields[i]] = (sums[fields[i]] or 0) + number
    end
  end
end

--- How often each thing ever happened here: name -> number.
local function totals_now()
  local stored, sums = call('HGETALL', key('totals')), {}
  add_counters(sums, stored)
  local open = sums.open
  sums.open = nil
  if open then
    add_counters(sums, call('HGETALL', key('stats:' .. whole(open))))
  end
  return sums
end

--- At the first shard: what others, which are retired with this call, had counted.
local function adopt_totals()
  local totals = key('totals')
  local fields = call('HGETALL', totals)
  for i = 1, #fields, 2 do
    if string.find(fields[i], '^from:') then
      for name, number in pairs(unpacked(fields[i + 1]) or {}) do
        bump(totals, tostring(name), count_in(number, 0))
      end
      call('HDEL', totals, fields[i])
    end
  end
end
