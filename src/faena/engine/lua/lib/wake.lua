--- One marker at most: it stays until an idle worker pops it, so no wake-up is lost.
--@include key
--@exports arm_wake
local function arm_wake()
  call('ZADD', key('wake'), 0, 'work')
end
