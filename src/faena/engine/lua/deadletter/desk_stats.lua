--- The dead-letter desk in numbers.
-- states   none
-- keys     dead, desk:, desk_groups, desk_due zsets
-- args     now · deaths since how many us count as new · due jobs wanted at most
-- returns  now · (status · number) … · id and instant of the oldest pending job, or nothing · new ones ·
--          groups · jobs to be retried by themselves · those of them that are due
--@flags no-writes
--@include now, desk_key, key
local STATUSES = { 'pending', 'retried', 'discarded', 'resolved' }
local now, numbers = now_us(), {}
for _, status in ipairs(STATUSES) do
  numbers[#numbers + 1], numbers[#numbers + 2] = status, call('ZCARD', index_key('status:' .. status))
end
return { now, numbers, call('ZRANGE', index_key('status:pending'), 0, 0, 'WITHSCORES'),
  call('ZCOUNT', key('dead'), now - ARGV[2], '+inf'), call('ZCARD', key('desk_groups')), call('ZCARD', key('desk_due')),
  call('ZRANGE', key('desk_due'), '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[3]) }
