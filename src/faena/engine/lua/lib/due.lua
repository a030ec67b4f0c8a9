--- Delayed jobs become ready at their instant; waiting time counts from there.
--@include read, key, mark, score, fact, waiting
--@exports make_ready
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
