--- Strike off messages that have arrived.
-- states   none
-- keys     messages streams · recipients set
-- args     now · to · id of the last that arrived
-- returns  how many are left
--@flags allow-oom
--@include key
local messages = key('messages:' .. ARGV[2])
local ms, number = string.match(ARGV[3], '^(%d+)-(%d+)$')
if call('EXISTS', messages) == 1 then
  call('XTRIM', messages, 'MINID', ms .. '-' .. string.format('%.0f', tonumber(number) + 1))
end
local left = call('XLEN', messages)
if left == 0 then
  call('SREM', key('recipients'), ARGV[2])
end
return left
