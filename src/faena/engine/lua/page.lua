--- One page of a state's ids, in order or in reverse, after a place.
-- states   none
-- keys     the state's zset
-- args     state · reverse 1|'' · limit · after id ('' from the start) · after score
-- returns  (id · score) …
-- The place is an id and its score: when that job has moved on meanwhile, reading goes on behind the
-- jobs of a smaller score, so that none is passed over; the reader skips what it has seen.
--@flags no-writes
--@include key
local set, reverse, limit, id, score = key(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3]), ARGV[4], ARGV[5]
local first = 0
if id ~= '' then
  local rank = call('ZSCORE', set, id) == score and call(reverse and 'ZREVRANK' or 'ZRANK', set, id)
  if rank then
    first = rank + 1
  elseif reverse then
    first = call('ZCOUNT', set, '(' .. score, '+inf')
  else
    first = call('ZCOUNT', set, '-inf', '(' .. score)
  end
end
local range = { set, first, first + limit - 1, 'WITHSCORES' }
if reverse then
  table.insert(range, 4, 'REV')
end
return call('ZRANGE', unpack(range))
