--- One marker at most: it stays until an idle worker pops it, so no wake-up is lost.
--@include keys
--@exports wake_worker
local function wake_worker()
  call('ZADD', key('wake'), 0, 'work')
end
