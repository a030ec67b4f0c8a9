--- Fields of `clock` that nearly every exchange needs, read once a call.
--@include read, key
--@each clock_fields = nil
local clock_fields

local function clock_of(name)
  if not clock_fields then
    local read = call('HMGET', key('clock'), 'prune_at', 'laned', 'virtual', 'moving', 'aside',
                      'walked', 'walked_ties', 'expires_from', 'digest')
    clock_fields = { prune_at = number_in(read[1], 0), laned = count_in(read[2], 0),
                     virtual = number_in(read[3], 0), moving = count_in(read[4], 0),
                     aside = count_in(read[5], 0),
                     walked = number_in(read[6]), walked_ties = count_in(read[7], 0),
                     expires_from = number_in(read[8]), digest = read[9] }
  end
  return clock_fields[name]
end
