--- The dead-letter desk in numbers.
-- states   none
-- keys     dead, desk:, desk_groups, desk_due zsets
--@args     new_us, most
--          new_us is the age up to which deaths count as new; most due jobs are told
-- returns  now · (status · number) … · id and instant of the oldest pending job, or nothing · new ones ·
--          groups · jobs to be retried by themselves · those of them that are due
--@flags no-writes
--@include now, dead_index, keys
local STATUSES = { 'pending', 'retried', 'discarded', 'resolved' }
local numbers = {}
for _, status in ipairs(STATUSES) do
  numbers[#numbers + 1], numbers[#numbers + 2] = status, call('ZCARD', index_key('status:' .. status))
end
return { now, numbers, call('ZRANGE', index_key('status:pending'), 0, 0, 'WITHSCORES'),
  call('ZCOUNT', key('dead'), now - new_us, '+inf'), call('ZCARD', key('desk_groups')), call('ZCARD', key('desk_due')),
  call('ZRANGE', key('desk_due'), '-inf', now, 'BYSCORE', 'LIMIT', 0, most) }
