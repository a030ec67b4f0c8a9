--- Serve the ring: give each lane its share of a claim and take its jobs.
-- A visit takes a few jobs where many lanes wait, because a visit costs more than a job; turns count
-- every one of them, so shares come out even all the same.
--@include safe_read, keys, lane, tenant_override, shares_by_minute, cost_limit, key_limit, cancel_expired
--@include lane_gates, packed_window
--@exports serve_ring
local QUANTUM = 25   -- of a large claim; a small one still goes to three lanes at least

--- The lane with the earliest turn goes first: `heap` is ordered so that no parent comes later than
-- its children.
local function sift(heap)
  local i, size = 1, #heap
  while true do
    local least, left = i, 2 * i
    if left <= size and heap[left].turn < heap[least].turn then
      least = left
    end
    if left < size and heap[left + 1].turn < heap[least].turn then
      least = left + 1
    end
    if least == i then
      return
    end
    heap[i], heap[least] = heap[least], heap[i]
    i = least
  end
end

--- Share out `number` jobs among all lanes there are, in order of their turns.
local function allot(visits, number, cost)
  local heap = {}
  for i, visit in ipairs(visits) do
    heap[i] = visit
  end
  while number > 0 and heap[1] do
    local first, second = heap[1], heap[2]
    local rival = math.min(second and second.turn or math.huge, heap[3] and heap[3].turn or math.huge)
    local ahead = math.max(1, math.floor((rival - first.turn) * first.weight / cost))
    local given = math.min(ahead, number, first.room - first.share)
    first.share, number = first.share + given, number - given
    first.turn = first.turn + given * cost / first.weight
    if first.share == first.room then
      heap[1] = heap[#heap]
      heap[#heap] = nil
    end
    sift(heap)
  end
end

--- Where more lanes wait behind these, each is given a few at once and comes back the later.
local function allot_quanta(visits, number, cost, quantum)
  for _, visit in ipairs(visits) do
    local given = math.min(quantum, visit.room, number)
    visit.share, number = given, number - given
    visit.turn = visit.turn + given * cost / visit.weight
  end
end

--- The next lanes of the ring with what each may be given; those that may have none are parked.
local function next_visits(asked, number, conf, now, is_gated)
  local popped = call('ZPOPMIN', key('ring'), asked)
  local visits, lanes = {}, {}
  for i = 1, #popped, 2 do
    lanes[#lanes + 1] = popped[i]
    visits[#visits + 1] = { lane = popped[i], turn = tonumber(popped[i + 1]), share = 0, room = number, weight = 1 }
  end
  if not is_gated or #lanes == 0 then
    return visits, #lanes
  end
  local controls, counts, open = controls_of(lanes, now), call('HMGET', key('lanes'), unpack(lanes)), {}
  local windows = windows_for(lanes, controls, conf, now)
  for i, visit in ipairs(visits) do
    local lane = visit.lane
    local running = (count_in(counts[i], 0) + (context.lane_changes[lane] or 0)) % LIVE
    visit.control = controls[lane]
    visit.weight = weight_of(visit.control)
    local room, opens_at = lane_room(number, visit.control, windows[i], conf, now, running)
    visit.room, visit.windows = room, windows[i]
    if room > 0 then
      open[#open + 1] = visit
    else
      park(lane, visit.turn, opens_at)
    end
  end
  return open, #lanes
end

--- How many of what was allotted to a lane can be paid for, where limits are by cost.
local function payable(visit, share, purse, conf)
  if purse.is_closed then
    visit.is_short = true
    return 0
  end
  visit.costs = look_into_costs(cost_windows(conf.tenant_costs, visit.lane), purse.now)
  local ids = call('ZRANGE', key('lane:' .. visit.lane), 0, share - 1)
  local number, again_at = afford(purse, visit.costs, ids)
  visit.is_short, visit.opens_at = visit.is_short or number < #ids, again_at
  return number
end

--- Take what was allotted to one lane; returns how many there were.
local function take_from(visit, taken, now, cost, conf)
  local lane, popped, ids, endings, at = visit.lane, taken.popped, taken.ids, taken.endings, taken.number
  local share, keys = visit.share, taken.keys
  if keys then
    share, visit.is_short = clear_head(lane, share, keys, conf, now)
  elseif expired_now(now) then
    share, visit.is_short = clear_expired_of_lane(lane, 0, share, now)
  end
  share = taken.purse and share > 0 and payable(visit, share, taken.purse, conf) or share
  local got, ending = call('ZPOPMIN', key('lane:' .. lane), share), ' lane=' .. lane
  for i = 1, #got, 2 do
    local id = got[i]
    at = at + 1
    ids[at], endings[at] = id, ending
    popped[2 * at - 1], popped[2 * at] = id, got[i + 1]
  end
  local number = at - taken.number
  visit.turn = visit.turn - (visit.share - number) * cost / visit.weight
  if number > 0 then
    if keys then
      note_taken(keys, ids, taken.number + 1)
    end
    taken.number = at
    context.virtual_now = math.max(virtual_time(), visit.turn - cost / visit.weight)
    count_lane(lane, 0, number)
    taken.visits[lane] = visit
    if visit.windows then
      spend_in_windows(visit.windows, number, now)
    end
    if visit.costs then
      spend_in_windows(visit.costs, 0, now)
    end
    local asked, last = taken.asked, #taken.asked
    asked[last + 1], asked[last + 2] = at - math.floor(number / 2), note_share(lane, number, visit.weight, now)
  end
  return number
end

--- Which of the lanes still have jobs: mostly all or none, which one question answers.
local function mark_empty(visits)
  local keys = {}
  for i, visit in ipairs(visits) do
    keys[i] = key('lane:' .. visit.lane)
  end
  local left = #keys > 0 and call('EXISTS', unpack(keys)) or 0
  for i, visit in ipairs(visits) do
    visit.is_empty = left == 0 or (left < #keys and call('EXISTS', keys[i]) == 0)
  end
end

--- Take what was allotted; lanes with jobs left go back into the ring, or wait until they can pay.
local function take(visits, taken, now, cost, conf)
  local back, owed, full = {}, {}, {}
  for _, visit in ipairs(visits) do
    local number = visit.share > 0 and take_from(visit, taken, now, cost, conf) or 0
    visit.is_empty = number < visit.share and not visit.is_short
    full[#full + 1] = visit.share > 0 and not visit.is_empty and not visit.is_short and visit or nil
  end
  mark_empty(full)
  for _, visit in ipairs(visits) do
    local list = visit.is_empty and owed or back
    if visit.opens_at then
      park(visit.lane, visit.turn, visit.opens_at)
    else
      list[#list + 1], list[#list + 2] = visit.turn, visit.lane
    end
  end
  if #back > 0 then
    call('ZADD', key('ring'), unpack(back))
  end
  if #owed > 0 then
    call('ZADD', key('debts'), unpack(owed))
  end
end

--- Debts that virtual time has overtaken mean nothing any more.
local function clear_debts()
  local old = call('ZRANGE', key('debts'), '-inf', virtual_time(), 'BYSCORE', 'LIMIT', 0, 200)
  if #old > 0 then
    call('ZREM', key('debts'), unpack(old))
  end
end

--- Takes up to `number` jobs out of their lanes: {popped = {id, score, …}, ids, endings (how each
-- one's lease ends), number, visits (the last of each lane), asked = {a job of each visit by number,
-- what is noted of its lane, …}}.
local function serve_ring(number, conf, now, cost, purse)
  local taken, before = { popped = {}, ids = {}, endings = {}, asked = {}, number = 0, purse = purse, cost = cost,
                    visits = {}, keys = open_keys(conf, purse) }, virtual_time()
  local quantum = conf.fifo and 1 or math.max(1, math.min(QUANTUM, math.ceil(number / 3)))
  local is_gated = conf.tenant_limits or conf.tenant_max_running or call('EXISTS', key('tenants')) == 1
  local least = 1
  for _ = 1, 12 do   -- rounds; one that finds few jobs in its lanes is followed by a wider one
    local left, former = number - taken.number, taken.number
    local asked = left > 0 and math.max(least, math.ceil(left / quantum)) or 0
    local visits, seen = next_visits(asked, left, conf, now, is_gated)
    if seen == 0 then
      break
    end
    if seen < asked or call('EXISTS', key('ring')) == 0 then
      allot(visits, left, cost)
    else
      allot_quanta(visits, left, cost, math.min(quantum, math.ceil(left / asked)))
    end
    take(visits, taken, now, cost, conf)
    if taken.number >= number or (purse and purse.is_closed) then
      break
    end
    local got = taken.number - former
    least = got == 0 and math.min(32, 2 * asked)
      or math.ceil((number - taken.number) / math.max(1, math.floor(got / seen)))
  end
  context.laned_change = context.laned_change - taken.number
  if virtual_time() > before then
    call('HSET', key('clock'), 'virtual', context.virtual_now)
    clear_debts()
  end
  return taken
end
