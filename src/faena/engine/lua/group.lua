--- Begin a group, or say how many members it has.
-- states   none of jobs
-- keys     group hashes · groups, errands zsets
-- args     now · group · open · (field · value) …  |  seal · total
-- returns  OK · unknown
--@include now, conf, tally, letter, company
local now, id, verb = now_us(ARGV[1]), ARGV[2], ARGV[3]
local answer = 'OK'
if verb == 'open' then
  if call('HSETNX', group_key(id), 'created', whole(now)) == 1 then
    call('ZADD', key('groups'), now, id)
  end
  if #ARGV > 3 then
    call('HSET', group_key(id), unpack(ARGV, 4))
  end
elseif call('EXISTS', group_key(id)) == 0 then
  answer = 'unknown'
else
  call('HSET', group_key(id), 'total', ARGV[4])
  settle_group(id, now)
end
flush_tally(now, conf_now().events_kept, '')
return answer
