--- Dead jobs by the fingerprint of their error, the groups with the most pending ones first.
-- states   none
-- keys     desk_groups, desk: zsets · desk_samples hash
--@args     most
-- returns  for each: fingerprint · pending ones · all · packed name, code, message · first death · last death
--          · id of the last
--@flags no-writes
--@include dead_index, keys
local groups, found = call('ZRANGE', key('desk_groups'), 0, most - 1, 'REV', 'WITHSCORES'), {}
for i = 1, #groups, 2 do
  local print = groups[i]
  local set = index_key('print:' .. print)
  local first, last = call('ZRANGE', set, 0, 0, 'WITHSCORES'), call('ZRANGE', set, -1, -1, 'WITHSCORES')
  found[#found + 1] = { print, tonumber(groups[i + 1]), call('ZCARD', set),
    call('HGET', key('desk_samples'), print) or '', first[2] or '', last[2] or '', last[1] or '' }
end
return found
