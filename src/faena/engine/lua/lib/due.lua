--- Delayed jobs become ready at their instant; waiting time counts from there.
--@include key, mark, score, tally
local function make_ready(ids, instants, conf)
  local specs, marks, scored = call('HMGET', key('specs'), unpack(ids)), marks_of(ids), {}
  for i, id in ipairs(ids) do
    local mark = marks[id]
    scored[2 * i - 1] = score_of(conf, instants[i], priority_of(specs[i], mark), mark and mark.a or 0)
    scored[2 * i] = id
  end
  call('ZREM', key('delayed'), unpack(ids))
  call('ZADD', key('ready'), unpack(scored))
end
