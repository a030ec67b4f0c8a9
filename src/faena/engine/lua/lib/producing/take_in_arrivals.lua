--- Takes in the jobs in the stream `arrivals`: it does the same as `enqueue`, for jobs that cannot be refused.
--@include safe_read, keys, now, queue_settings, replay, event_and_stats, score, spec_line, lane, enqueue_batch
--@include enqueue_one, wake_worker
--@exports take_in, take_in_first
local MOST = 1000   -- in one round; what is left is taken in by the next
local PLACE, NONE = { lane = true, chain = true, key = true }, {}

--- What the line of a spec says of its job's place; nil when it says more, which no producer has left.
local function place_in(spec)
  if string.byte(spec, 4) == 10 then
    return NONE
  end
  local facts = facts_in(spec)
  for name in pairs(facts) do
    if not PLACE[name] then
      return nil
    end
  end
  return facts
end

--- The new jobs of some entries: {ids, specs, places, at}; and the last call of each caller.
-- What producers leave is id, spec, caller, call.
local function newcomers(entries)
  local ids, specs, places, at, latest, reached, number = {}, {}, {}, {}, {}, {}, 0
  local stem, instant
  for i = 1, #entries do
    local came, fields = entries[i][1], entries[i][2]
    local spec, caller = fields[2], fields[3]
    local place, turn = string.find(spec, '^%d%d%d[ \n]') and place_in(spec), turn_of(fields[4])
    reached[caller or ''] = reached[caller or ''] or turn_of(last_call(caller)) or 0
    -- one that was sent again came before: its call tells it, or in the end its id
    if place and turn and turn > reached[caller] then
      latest[caller], reached[caller], number = fields[4], turn, number + 1
      if string.sub(came, 1, 13) ~= stem then
        stem = string.sub(came, 1, 13)
        instant = tonumber(string.match(came, '^%d+')) * 1000
      end
      ids[number], specs[number], places[number], at[number] = fields[1], spec, place, instant
    end
  end
  return { ids = ids, specs = specs, places = places, at = at, number = number }, latest
end

--- In columns, where there are no lanes and none of them has a place.
local function take_in_plain(jobs, conf, stamp)
  local specs, ready, ids, seen = {}, {}, {}, {}
  local known = call('HMGET', key('specs'), unpack(jobs.ids))
  for i = 1, jobs.number do
    local id, spec = jobs.ids[i], jobs.specs[i]
    if not known[i] and not seen[id] then
      local number = #ids + 1
      stamp, seen[id] = math.max(stamp, jobs.at[i]) + 1, true
      ids[number], specs[2 * number - 1], specs[2 * number] = id, id, spec
      ready[2 * number - 1], ready[2 * number] = score_of(conf, stamp, tonumber(string.sub(spec, 1, 3)), 0), id
    end
  end
  if #ids > 0 then
    call('HSET', key('specs'), unpack(specs))
    call('ZADD', key('ready'), unpack(ready))
    record_event('enqueued', ids)
  end
  return stamp, #ids
end

local function take_in_placed(jobs, conf)
  local known, intake = call('HMGET', key('specs'), unpack(jobs.ids)), new_intake(conf, 0)
  for i = 1, jobs.number do
    if not known[i] and not intake.seen[jobs.ids[i]] then
      intake.stamp = math.max(intake.stamp, jobs.at[i])
      add(intake, jobs.ids[i], jobs.specs[i], nil, jobs.places[i])
    end
  end
  close_intake(intake)
  flush_lanes()
end

local function is_plain(jobs, laned)
  for i = 1, jobs.number do
    if jobs.places[i] ~= NONE then
      return false
    end
  end
  return laned == 0
end

--- The commonest way: one ordinary job, to a worker that waits for it.
local function take_in_one(came, fields)
  local spec, caller = fields[2] or '', fields[3]
  return string.find(spec, '^%d%d%d\n') and caller and turn_of(fields[4])
    and enqueue_one(fields[1], spec, caller, fields[4], '', tonumber(string.match(came, '^%d+')) * 1000)
end

--- Returns 1 when there was anything, 0, or -1 where the queue must be declared again first, and they lie there;
-- and whether there is more.
local function take_in_arrivals()
  local entries = call('XRANGE', key('arrivals'), '-', '+', 'COUNT', MOST)
  if #entries == 1 and take_in_one(entries[1][1], entries[1][2]) then
    call('XTRIM', key('arrivals'), 'MAXLEN', 0)
    return 1
  end
  local clock = call('HMGET', key('clock'), 'digest', 'stamp', 'enqueued', 'laned')
  local conf = conf_of(clock[1])
  if not conf.version then
    return -1
  end
  local jobs, latest = newcomers(entries)
  context.now = jobs.at[jobs.number] or 0
  if jobs.number > 0 and is_plain(jobs, count_in(clock[4], 0)) then
    local stamp, number = take_in_plain(jobs, conf, number_in(clock[2], 0))
    call('HSET', key('clock'), 'stamp', stamp, 'enqueued', count_in(clock[3], 0) + number)
  elseif jobs.number > 0 then
    take_in_placed(jobs, conf)
  end
  for caller, id_of_call in pairs(latest) do
    remember(caller, id_of_call, cmsgpack.pack({ jobs.at[jobs.number] }))
  end
  flush_event()
  local left = #entries == MOST and call('XLEN', key('arrivals')) - MOST or 0
  call('XTRIM', key('arrivals'), 'MAXLEN', left)
  return #entries > 0 and 1 or 0, left > 0
end

--- Take in all that was left, each round as a call of its own: what it has to write, it has written.
local function take_in()
  if call('XLEN', key('arrivals')) == 0 then
    return 0
  end
  local own, arrived, is_more = context, 0, true
  while is_more do
    context = fresh_context()
    arrived, is_more = take_in_arrivals()
  end
  context = own
  return arrived
end

--- What a script begins with that others may have left jobs for; a worker is told of them.
local function take_in_first()
  local arrived = take_in()
  if arrived == 1 then
    wake_worker()
  end
  return arrived
end
