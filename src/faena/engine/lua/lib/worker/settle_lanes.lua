--- What endings mean for lanes and chains.
--@include keys, lane, waiting, tenant_override, charge_running_time, table_names
--@exports settle_lanes
--- Count the jobs of a list out of their lanes; those that are in a chain join `chained`.
local function count_out(batch, live, list, chained)
  for i = 1, #list do
    local id = list[i]
    local lane, chain = batch.lanes[id], batch.chains[id]
    if lane then
      count_lane(lane, live, -1)
    end
    if chain then
      chained[#chained + 1] = { id = id, lane = lane, chain = chain }
    end
  end
end

--- Jobs that were put back stand in `ready` already.
local function put_back_in_lanes(batch)
  local laned = {}
  for i, id in ipairs(batch.back) do
    local lane = batch.lanes[id]
    laned[#laned + 1] = lane and { id = id, lane = lane, score = batch.ready[2 * i - 1] }
  end
  enter_lanes(laned)
end

--- Lanes that waited for one of their jobs to end may be served again.
local function free_lanes(batch, now)
  if call('EXISTS', key('parked')) == 0 then
    return
  end
  local ended, free, bounded = batch.ended, {}, {}
  for _, lane in pairs(batch.lanes) do
    ended[lane] = ended[lane] or 0
  end
  local lanes = names_in(ended)
  for i, until_at in ipairs(#lanes > 0 and call('ZMSCORE', key('parked'), unpack(lanes)) or {}) do
    if tonumber(until_at or 0) >= FULL then
      free[#free + 1] = lanes[i]
    else
      bounded[#bounded + 1] = until_at and lanes[i] or nil
    end
  end
  for lane, control in pairs(controls_of(bounded, now)) do
    free[#free + 1] = control.max_running and control.ends_at and lane or nil   -- see lane_gates.lua
  end
  unpark(free)
end

local function settle_lanes(batch, conf, now)
  local later = {}
  for lane, number in pairs(batch.ended) do
    count_lane(lane, -number, -number)
  end
  count_out(batch, -1, batch.dead, batch.chained)
  count_out(batch, -1, batch.cancelled, batch.chained)
  yield_turns(batch.chained)
  count_out(batch, 0, batch.retried, later)
  count_out(batch, 0, batch.snoozed, later)
  if conf.pass then
    yield_turns(later)
  end
  count_out(batch, 0, batch.back, {})
  put_back_in_lanes(batch)
  for _, held in ipairs(batch.held) do
    if held.lane then
      hold_lane(held.lane, held.until_at, conf, now, held.reason)
    end
  end
  free_lanes(batch, now)
  if batch.spent then
    charge_lanes(batch)
  end
end
