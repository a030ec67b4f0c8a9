--- A shard that lanes have left keeps its epoch for a day, see retire.lua. What an operator tells it too
-- late must not lie there until somebody lives in it again.
--@include key
--@exports is_given_up
local function is_given_up()
  local known = call('HMGET', key('conf'), 'retired', 'version')
  return known[1] and not known[2]
end
