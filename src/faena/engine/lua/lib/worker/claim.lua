--- Take ready jobs in order of score and lease them to a worker.
-- The lease id is the call's id: a job is claimed at most once in a call, so (job, lease) is unique.
--@include keys, event_and_stats, job_metadata, score, facts_for_worker, spec_line, lane, claimed_specs, cost_limit
--@include key_limit, fair_ring, join_common_lane, cancel_expired, lease_record, idle_queue, packed_window
--@include tenant_override, table_names, shares_by_minute
--@exports claim

--- A lease names the chain of its job, which is in its spec.
local function note_chains(records, specs)
  for i, spec in ipairs(specs) do
    local _, chain = lane_in(spec)
    if chain then
      records[2 * i] = records[2 * i] .. ' chain=' .. chain
    end
  end
end

local function lease_all(taken, specs, lease, worker, now, deadline)
  local shared = lease_stem(lease, now, worker)
  local ids, popped, endings = taken.ids, taken.popped, taken.endings
  local records, running, until_at = {}, {}, whole(deadline)
  for number = 1, #ids do
    local id, i = ids[number], 2 * number
    records[i - 1], records[i] = id, shared .. popped[i] .. (endings[number] or '')
    running[i - 1], running[i] = until_at, id
  end
  if not context.is_only_ready and call('EXISTS', key('heads')) == 1 then
    note_chains(records, specs)
  end
  call('HSET', key('leases'), unpack(records))
  call('ZADD', key('running'), unpack(running))
end

--- Lanes that were given back `numbers` of jobs have spent nothing on those, neither turns nor room in their windows:
-- they stand in the ring where they would without them, also those that were parked.
local function refund(taken, numbers, now)
  local lanes, turns, freed = names_in(numbers), {}, {}
  if #lanes == 0 then
    return
  end
  for i, lane in ipairs(lanes) do
    local visit, number = taken.visits[lane], numbers[lane]
    for _, window in ipairs(look_into_costs(visit.windows or {}, now)) do
      give_back(window, now, number)
    end
    note_share(lane, -number, visit.weight, now)
    turns[2 * i - 1], turns[2 * i] = visit.turn - number * taken.cost / visit.weight, lane
  end
  call('ZADD', key('ring'), unpack(turns))
  call('ZREM', key('debts'), unpack(lanes))
  for i, until_at in ipairs(call('ZMSCORE', key('parked'), unpack(lanes))) do
    freed[#freed + 1] = until_at and lanes[i] or nil
  end
  unpark(freed)
end

--- Give back all but the first `kept` jobs, which were popped and not leased.
local function cut(taken, kept, now)
  local ids, popped, endings, rest, laned, numbers = taken.ids, taken.popped, taken.endings, {}, {}, {}
  for i = #ids, kept + 1, -1 do
    local id, score, lane = ids[i], popped[2 * i], string.match(endings[i] or '', '^ lane=(.*)$')
    rest[#rest + 1], rest[#rest + 2] = score, id
    ids[i], popped[2 * i - 1], popped[2 * i], endings[i] = nil, nil, nil, nil
    if lane then
      count_lane(lane, 0, -1)
      laned[#laned + 1], numbers[lane] = { id = id, score = score, lane = lane }, (numbers[lane] or 0) + 1
    end
  end
  call('ZADD', key('ready'), unpack(rest))
  refund(taken, numbers, now)
  enter_lanes(laned)
end

--- Take up to `number` ready jobs out of their places; the answer is that of serve_ring.
local function pop_ready(number, conf, now)
  local purse = open_purse(conf, now)
  if laned_now() == 0 then
    number = expired_now(now) and clear_expired('ready', 0, number, nil, now) or number
    if purse and number > 0 then   -- of none, the range would be of all
      number = afford(purse, {}, call('ZRANGE', key('ready'), 0, number - 1))
    end
    local unlaned, first = number > 0 and call('ZPOPMIN', key('ready'), number) or {}, {}
    for i = 1, #unlaned, 2 do
      first[(i + 1) / 2] = unlaned[i]
    end
    return { popped = unlaned, ids = first, endings = {}, asked = {}, purse = purse }
  end
  local is_walking = join_common_lane(number)
  local taken = serve_ring(number, conf, now, 1, purse)
  local ids = taken.ids
  taken.is_cut = is_walking and #ids < number   -- the next call finds more
  if #ids > 0 then
    call('ZREM', key('ready'), unpack(ids))
  end
  return taken
end

--- Note how long the middle one of each visit's jobs was ready: its score, less what priority and
-- attempts are worth. To ask all of them would cost what a command does.
local function note_waits(taken, specs, marks, conf, now)
  local asked = taken.asked
  for i = 1, #asked, 2 do
    local at, note = asked[i], asked[i + 1]
    local spec, mark, worth = specs[at], marks[taken.ids[at]], 0
    if spec and not conf.fifo then
      worth = score_of(conf, 0, priority_of(spec, mark), mark and mark.a or 0)
    end
    if spec then
      note[2], note[3] = note[2] + 1, note[3] + math.max(0, now - taken.popped[2 * at] + worth)
    end
  end
end

--- Returns {id, score, …}, the specs in the same order, the facts of the marked ones, the ids, and
-- whether the claim would have been too large, and when to look again where a limit by cost has stopped it.
local function claim(number, lease, worker, now, lease_us, conf)
  local taken = number > 0 and pop_ready(number, conf, now)
  local ids = taken and taken.ids or {}
  local purse, keys = taken and taken.purse or {}, taken and taken.keys or {}
  if #ids == 0 then
    return {}, {}, {}, {}, taken and taken.is_cut or keys.is_cut or false, purse.opens_at
  elseif purse.windows then
    spend_in_windows(purse.windows, 0, now)
  end
  local specs = specs_of(ids, purse.look or keys.look)
  local is_cut = #specs < #ids or purse.is_full or keys.is_cut or taken.is_cut
  if #specs < #ids then
    cut(taken, #specs, now)
  end
  if keys.known then
    spend_keys(keys, ids, now)
  end
  lease_all(taken, specs, lease, worker, now, now + lease_us)
  record_event('claimed', ids)
  local marks = marks_of(ids)
  note_waits(taken, specs, marks, conf, now)
  return taken.popped, specs, next(marks) and facts_for_worker(marks) or {}, ids, is_cut, purse.opens_at
end
