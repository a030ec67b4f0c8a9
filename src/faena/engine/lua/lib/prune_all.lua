--- Prune every finished state, and say when to do so again.
--@include key, prune
--@exports prune_all
local PRUNE_EVERY_US = 1000000

local function prune_all(conf, now, slice)
  local most = 0
  for _, state in ipairs({ 'completed', 'dead', 'cancelled' }) do
    most = math.max(most, prune(state, conf, now, slice))
  end
  call('HSET', key('clock'), 'prune_at', most < slice and now + PRUNE_EVERY_US or now)
end
