--- Make the jobs ready whose instant has come.
--@include due, key, tally
--@exports promote_due
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
