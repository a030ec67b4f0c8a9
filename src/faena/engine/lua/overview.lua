--- A queue at one instant: how many jobs per state, its holds, its settings, its workers, its clock.
-- states   none
-- keys     all zsets · holds, conf, clock hashes · workers zset
-- args     now
-- returns  now · (state · number) … · holds · conf · clock · (worker · gone_at) … · oldest ready score
--@flags no-writes
--@include now, state
local now, numbers = now_us(ARGV[1]), {}
for _, state in ipairs(STATES) do
  numbers[#numbers + 1] = state
  numbers[#numbers + 1] = call('ZCARD', key(state))
end
return { now, numbers, call('HGETALL', key('holds')), call('HGETALL', key('conf')),
  call('HGETALL', key('clock')), call('ZRANGE', key('workers'), now, '+inf', 'BYSCORE', 'WITHSCORES'),
  call('ZRANGE', key('ready'), 0, 0, 'WITHSCORES')[2] or '' }
