--- Lanes: the jobs of one tenant, served in turn with those of the others. A lane is `@` and a tenant.
--   lanes         lane -> live jobs * 1000000 + those that run; gone at 0
--   lane:<lane>   its ready jobs by score; they stand in `ready` as well
--   ring          lanes that may be served, by the virtual instant of their next turn
--   parked        lanes with ready jobs that may not be served, by the instant to look again
--   debts         lanes outside the ring, by the virtual instant before which they get no turn
--   moves         lanes on their way to or from another shard: they are not served, see freeze_lane.lua
-- Serving a lane brings virtual time to the lane's turn and sets its next one cost/weight later. One
-- that comes back enters at the present or at its debt: idling earns nothing, leaving clears nothing.
-- `laned` in the clock counts the ready jobs that stand in lanes.
--@include safe_read, keys, clock_fields, listpack, shares_by_minute, table_names
--@exports LIVE, COMMON, FULL, virtual_time, laned_now, aside_now, count_lane, flush_lanes, enter_ring, enter_lanes
--@exports quit_ring, leave_aside, leave_lane
--@state lane_changes = {}   -- lane -> what is to be added to its count
--@state laned_change = 0   -- what is to be added to `laned`
--@state aside_change = 0   -- what is to be added to `aside`, see key_limit.lua
--@state virtual_now = false
--@ending flush_lanes
local LIVE = 1000000
local COMMON = '@'   -- the lane of jobs without a tenant
local FULL = 1e18   -- parked until one of its jobs ends, or it is released


local function virtual_time()
  local now = context.virtual_now or clock_of('virtual')
  context.virtual_now = now
  return now
end

--- How many ready jobs stand in lanes.
local function laned_now()
  return clock_of('laned') + context.laned_change
end

--- How many of them wait for the limit of their key.
local function aside_now()
  return clock_of('aside') + context.aside_change
end

local function count_lane(lane, live, running)
  local changes = context.lane_changes
  changes[lane] = (changes[lane] or 0) + live * LIVE + running
end

--- Write the counts that a call has changed.
local function flush_lanes()
  flush_shares()
  if context.aside_change ~= 0 then
    bump(key('clock'), 'aside', context.aside_change)
    context.aside_change, context.clock_fields = 0, false
  end
  if context.laned_change ~= 0 then
    bump(key('clock'), 'laned', context.laned_change)
    context.laned_change, context.clock_fields = 0, false
  end
  local changes = context.lane_changes
  if not next(changes) then
    return
  end
  local lanes = names_in(changes)
  local counts, changed, gone = call('HMGET', key('lanes'), unpack(lanes)), {}, {}
  for i, lane in ipairs(lanes) do
    local count = count_in(counts[i], 0) + changes[lane]
    if count > 0 then
      changed[#changed + 1], changed[#changed + 2] = lane, count
    else
      gone[#gone + 1] = lane
    end
  end
  context.lane_changes = {}
  if #changed > 0 then
    leave_listpack(key('lanes'), call('HSET', key('lanes'), unpack(changed)))
  end
  if #gone > 0 then
    call('HDEL', key('lanes'), unpack(gone))
  end
end

--- Lanes that have ready jobs take their place in the ring, unless they are there or parked.
local function enter_ring(lanes)
  local parked = call('ZMSCORE', key('parked'), unpack(lanes))
  local debts = call('ZMSCORE', key('debts'), unpack(lanes))
  local moves = clock_of('moving') > 0 and call('HMGET', key('moves'), unpack(lanes)) or parked
  local entries, paid = {}, {}
  for i, lane in ipairs(lanes) do
    if moves[i] and not parked[i] then
      call('ZADD', key('parked'), FULL, lane)
    elseif not parked[i] then
      entries[#entries + 1] = math.max(virtual_time(), tonumber(debts[i] or 0))
      entries[#entries + 1] = lane
      paid[#paid + 1] = lane
    end
  end
  if #paid > 0 then
    leave_listpack_set(key('ring'), call('ZADD', key('ring'), 'NX', unpack(entries)))
    call('ZREM', key('debts'), unpack(paid))
  end
end

--- Put ready jobs, {id, score, lane}, into their lanes.
local function enter_lanes(items)
  local columns, lanes = {}, {}
  for _, item in ipairs(items) do
    local lane, column = item.lane, columns[item.lane]
    if column then
      column[#column + 1], column[#column + 2] = item.score, item.id
    else
      columns[lane], lanes[#lanes + 1] = { item.score, item.id }, lane
    end
  end
  for _, lane in ipairs(lanes) do
    -- what is added, not what was given: an operator may name a job twice
    context.laned_change = context.laned_change + call('ZADD', key('lane:' .. lane), unpack(columns[lane]))
  end
  if #lanes > 0 then
    enter_ring(lanes)
  end
end

--- A lane without ready jobs has no place in the ring; what it owes stays.
local function quit_ring(lane)
  local turn = tonumber(call('ZSCORE', key('ring'), lane) or 0)
  if turn > virtual_time() then
    call('ZADD', key('debts'), turn, lane)
  end
  call('ZREM', key('ring'), lane)
  if call('ZREM', key('parked'), lane) == 1 then
    context.throttles[lane] = 'freed'
  end
end

--- A job of a key leaves what is set aside, or makes room there; returns how many were.
local function leave_aside(id, name, is_in_lane)
  if is_in_lane then
    call('ZADD', key('aside'), 'XX', 0, name)   -- another may start in its place
    return 0
  end
  local left = call('ZREM', key('aside:' .. name), id)
  if call('EXISTS', key('aside:' .. name)) == 0 then
    call('ZREM', key('aside'), name)
  end
  context.aside_change = context.aside_change - left
  return left
end

--- A ready job leaves its lane otherwise than by being claimed; `name` is its key where some are set aside.
local function leave_lane(id, lane, name)
  local left = call('ZREM', key('lane:' .. lane), id)
  if name then
    left = left + leave_aside(id, name, left == 1)
  end
  context.laned_change = context.laned_change - left
  if call('EXISTS', key('lane:' .. lane)) == 0 then
    quit_ring(lane)
  end
end
