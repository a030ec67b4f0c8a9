--- A queue at one instant: how many jobs per state, its holds, its settings, its workers, its clock.
-- states   none
-- keys     all zsets · desk: zsets · holds, conf, clock, about hashes · workers zset
--@args     none
-- returns  now · (state · number) … · holds · conf · clock · (worker · until it is taken for gone) … ·
--          (status · number) … of dead jobs that were dealt with; `dead` counts only the others ·
--          (worker · what it says of itself) …
--@flags no-writes
--@include now, job_state, dead_index, keys
local DEALT_WITH = { 'retried', 'discarded', 'resolved' }
local numbers, dealt, done = {}, {}, 0
for _, status in ipairs(DEALT_WITH) do
  local number = call('ZCARD', index_key('status:' .. status))
  dealt[#dealt + 1], dealt[#dealt + 2], done = status, number, done + number
end
for _, state in ipairs(STATES) do
  numbers[#numbers + 1] = state
  numbers[#numbers + 1] = call('ZCARD', key(state)) - (state == 'dead' and done or 0)
end
return { now, numbers, call('HGETALL', key('holds')), call('HGETALL', key('conf')),
  call('HGETALL', key('clock')), call('ZRANGE', key('workers'), now, '+inf', 'BYSCORE', 'WITHSCORES'), dealt,
  call('HGETALL', key('about')) }
