--- Jobs that wait, ready or blocked: how they begin to wait, and how they leave.
--@include safe_read, keys, spec_line, lane, order_chain, wake_worker, event_and_stats
--@exports fresh_stamp, write_ready, write_common, start_waiting, yield_turns, items_of, leave_waiting
--- The position behind every job of a chain that has come so far.
local function fresh_stamp(now)
  local stamp = math.max(number_in(call('HGET', key('clock'), 'stamp'), 0), now) + 1
  call('HSET', key('clock'), 'stamp', stamp)
  return stamp
end

local function write_ready(items)
  local ready, laned = {}, {}
  for i, item in ipairs(items) do
    ready[2 * i - 1], ready[2 * i] = item.score, item.id
    if item.lane then
      laned[#laned + 1] = item
    end
  end
  if #items > 0 then
    call('ZADD', key('ready'), unpack(ready))
    enter_lanes(laned)
  end
end

--- Jobs without a lane share the common one from now on, and their specs say so; one without a spec has none.
local function write_common(items, specs)
  local columns = {}
  for i, spec in ipairs(specs) do
    if spec then
      columns[#columns + 1], columns[#columns + 2], items[i].lane = items[i].id, with_lane(spec, COMMON), COMMON
    end
  end
  if #columns > 0 then
    call('HSET', key('specs'), unpack(columns))
    count_lane(COMMON, #columns / 2, 0)
  end
end

--- Where tenants' jobs are ready, a job without a tenant takes turns with them: such share a lane from
-- now on, and their specs say so. On a queue whose jobs have no tenants there is no lane.
local function share_lane(items)
  local is_laned, ids, joined, seen = laned_now() > 0, {}, {}, {}
  for _, item in ipairs(items) do
    if item.lane then
      is_laned = true
    elseif not item.chain and not seen[item.id] then   -- an operator may name a job twice: the first time counts
      seen[item.id] = true
      if is_laned then
        ids[#ids + 1], joined[#joined + 1] = item.id, item
      end
    end
  end
  if #ids == 0 then
    return items
  end
  write_common(joined, call('HMGET', key('specs'), unpack(ids)))
  return items
end

--- Items {id, score, lane, chain} may run from now on: each is ready, or blocked in its chain.
-- Idle workers are the caller's to wake.
local function start_waiting(items)
  write_ready(share_lane(take_turns(items)))
end

--- Items {id, lane, chain} that had, or may have had, their chain's turn have no use for it. Returns
-- how many jobs are ready in their place.
local function yield_turns(items)
  local chained = {}
  for _, item in ipairs(items) do
    if item.chain then
      chained[#chained + 1] = item
    end
  end
  if #chained == 0 then
    return 0
  end
  local ready, ids = pass_turns(chained), {}
  for i, item in ipairs(ready) do
    ids[i] = item.id
  end
  write_ready(ready)
  record_event('unblocked', ids)
  return #ids
end

--- Items of jobs by their specs; those without a lane or a chain have none.
local function items_of(ids)
  local items = {}
  -- a lane that this very call has brought is not written yet
  if #ids > 0 and (next(context.lane_changes) or call('EXISTS', key('lanes'), key('heads')) > 0) then
    for i, spec in ipairs(call('HMGET', key('specs'), unpack(ids))) do
      local lane, chain = lane_in(spec)
      if lane or chain then
        items[#items + 1] = { id = ids[i], lane = lane, chain = chain, key = aside_now() > 0 and key_in(spec) or nil }
      end
    end
  end
  return items
end

--- Jobs that waited in `state` are no longer live; its set is the caller's to clear.
local function leave_waiting(ids, state)
  local items = items_of(ids)
  for _, item in ipairs(items) do
    if item.lane then
      count_lane(item.lane, -1, 0)
      if state == 'ready' then
        leave_lane(item.id, item.lane, item.key)
      end
    end
    if item.chain and state == 'blocked' then
      call('ZREM', key('tail:' .. item.chain), item.id)
    end
  end
  if yield_turns(items) > 0 then
    wake_worker()
  end
end
