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
  tell('promoted', ids)
  return #ids
end
