--- Delayed jobs become ready at their instant; waiting time counts from there.
--@include safe_read, keys, job_metadata, score, spec_line, waiting, event_and_stats
--@exports make_ready, promote_due
local function make_ready(ids, instants, conf)
  local specs, marks, items = call('HMGET', key('specs'), unpack(ids)), marks_of(ids), {}
  for i, id in ipairs(ids) do
    local mark, lane, chain = marks[id] or {}, lane_in(specs[i])
    local score = chain and number_in(mark.s, instants[i])
      or score_of(conf, instants[i], priority_of(specs[i], mark), mark.a or 0)
    items[i] = { id = id, score = score, lane = lane, chain = chain }
  end
  call('ZREM', key('delayed'), unpack(ids))
  start_waiting(items)
end

--- Those whose instant has come, at most `slice`; returns how many.
local function promote_due(conf, now, slice)
  local due = call('ZRANGE', key('delayed'), '-inf', now, 'BYSCORE', 'LIMIT', 0, slice, 'WITHSCORES')
  if #due == 0 then
    return 0
  end
  local ids, instants = {}, {}
  for i = 1, #due, 2 do
    ids[#ids + 1], instants[#instants + 1] = due[i], tonumber(due[i + 1])
  end
  make_ready(ids, instants, conf)
  record_event('promoted', ids)
  return #ids
end
