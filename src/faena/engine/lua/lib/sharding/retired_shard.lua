--- A shard that was retired keeps its epoch for a day, see retire.lua. What an operator tells it too
-- late must not wait there until the shard is used again.
--@include keys
--@exports is_retired
local function is_retired()
  local known = call('HMGET', key('conf'), 'retired', 'version')
  return known[1] and not known[2]
end
