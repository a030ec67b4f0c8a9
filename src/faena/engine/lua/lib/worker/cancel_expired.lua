--- Jobs that have expired end when their turn comes, before anything counts them: no limit, no tenant's share,
-- no lease. `expires_from` in the clock says before when no live job expires; it is there from when such a job
-- comes until the queue is idle, and a claim without it, or before it, looks at nothing.
--@include keys, job_metadata, clock_fields, lane, waiting, errors_and_logs, finish, order_chain, event_and_stats
--@exports expired_now, clear_expired, clear_expired_of_lane, end_expired
--@state late = nil   -- what this call has found of them; false where there can be none
local LATE_OF_VISIT, LATE_OF_CALL = 50, 100   -- jobs that end; the rest waits for the next call


local function expired_now(now)
  local late = context.late
  if late == nil then
    local from = clock_of('expires_from')
    late = from and from <= now and { ids = {}, marks = {}, lanes = {}, left = LATE_OF_CALL } or false
    context.late = late
  end
  return late
end

local function is_late(mark, now)
  return mark and mark.e and mark.e <= now
end

local function note_late(id, mark, lane)
  local late = context.late
  late.ids[#late.ids + 1], late.marks[id], late.lanes[id] = id, mark, lane
  late.left = late.left - 1
end

--- Of jobs in their order, how many live ones stand before one that must wait for the next call, and those
-- that have expired, at most `most`.
local function judge_late(ids, most, lane, now)
  local marks, live, over = marks_of(ids), 0, {}
  for _, id in ipairs(ids) do
    if not is_late(marks[id], now) then
      live = live + 1
    elseif #over == most then
      return live, over, true
    else
      over[#over + 1] = id
      note_late(id, marks[id], lane)
    end
  end
  return live, over, false
end

--- Take expired jobs out of a set, from a rank on, until live ones stand in all ranks before `to`. Returns how
-- many ranks are so, whether more stand behind what may end in this call, and how many were taken out.
local function clear_expired(set, from, to, lane, now)
  local most, number = math.min(LATE_OF_VISIT, context.late.left), 0
  for _ = 0, LATE_OF_VISIT do   -- each round but the last takes one out at least
    local ids = from < to and call('ZRANGE', key(set), from, to - 1) or {}
    local live, over, is_cut = judge_late(ids, most - number, lane, now)
    from, number = from + live, number + #over
    if #over > 0 then
      call('ZREM', key(set), unpack(over))
    end
    if is_cut or #over == 0 then
      return from, is_cut, number
    end
  end
  return from, true, number
end

--- The same in the lane of a visit.
local function clear_expired_of_lane(lane, from, to, now)
  local live, is_cut, number = clear_expired('lane:' .. lane, from, to, lane, now)
  context.laned_change = context.laned_change - number
  return live, is_cut
end

--- They are no longer live; returns those that have the turn of a chain.
local function leave_late(ids)
  local chained, lanes = {}, context.late.lanes
  call('ZREM', key('ready'), unpack(ids))
  for _, item in ipairs(items_of(ids)) do
    lanes[item.id] = lanes[item.id] or item.lane
    chained[#chained + 1] = item.chain and item or nil
    if item.key then
      leave_aside(item.id, item.key, true)
    end
  end
  for _, lane in pairs(lanes) do
    count_lane(lane, -1, 0)
  end
  return chained
end

--- Their turns pass to the next in their chains; of those, the ones that have expired are returned.
local function pass_late(chained, now)
  local items, ids, over, ready = pass_turns(chained), {}, {}, {}
  for i, item in ipairs(items) do
    ids[i] = item.id
  end
  local marks, freed = marks_of(ids), {}
  for _, item in ipairs(items) do
    if is_late(marks[item.id], now) and context.late.left > 0 then
      over[#over + 1] = item
      note_late(item.id, marks[item.id])
      if item.lane then
        count_lane(item.lane, -1, 0)
      end
    else
      ready[#ready + 1], freed[#freed + 1] = item, item.id
    end
  end
  write_ready(ready)
  record_event('unblocked', freed)
  return over
end

--- End what was found: cancelled, with the words a worker has for it. Returns {id, attempts} … to tell, or nil.
local function end_expired(worker, conf, now)
  local late = context.late
  if not late or #late.ids == 0 then
    return nil
  end
  local chained, told = leave_late({ unpack(late.ids) }), {}
  while #chained > 0 do   -- all but the last round take of what is left to this call
    chained = pass_late(chained, now)
  end
  local words = string.format('{"name":"Expired","message":"it expired before it was started","code":"EXPIRED",'
    .. '"worker":%s,"at":%.0f}', cjson.encode(worker), now)
  for i, id in ipairs(late.ids) do
    append_line(id, 'error', words)
    late.marks[id].i = 1
    told[i] = { id, late.marks[id].a or 0 }
  end
  save_marks(late.ids, late.marks)
  finish('cancelled', late.ids, late.marks, conf, now)
  return told
end
