--- Strike off messages that have arrived.
-- states   none
-- keys     messages streams · recipients set
--@args     to, last
--          last is the id of the last that arrived
-- returns  how many are left
--@flags allow-oom
--@include keys
local messages = key('messages:' .. to)
local ms, number = string.match(last, '^(%d+)-(%d+)$')
if call('EXISTS', messages) == 1 then
  call('XTRIM', messages, 'MINID', ms .. '-' .. string.format('%.0f', tonumber(number) + 1))
end
local left = call('XLEN', messages)
if left == 0 then
  call('SREM', key('recipients'), to)
end
return left
