--- Strike off letters that have arrived.
-- states   none
-- keys     letters streams · addressees set
-- args     now · to · id of the last that arrived
-- returns  how many are left
--@flags allow-oom
--@include key
local letters = key('letters:' .. ARGV[2])
local ms, number = string.match(ARGV[3], '^(%d+)-(%d+)$')
if call('EXISTS', letters) == 1 then
  call('XTRIM', letters, 'MINID', ms .. '-' .. string.format('%.0f', tonumber(number) + 1))
end
local left = call('XLEN', letters)
if left == 0 then
  call('SREM', key('addressees'), ARGV[2])
end
return left
