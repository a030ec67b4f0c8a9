--- Fields of `clock` that nearly every exchange needs, read once a call; those of queues with lanes when asked for.
--@include read, key
--@each clock_fields = nil
local LANED = { virtual = true, moving = true, aside = true, walked = true, walked_ties = true }

local clock_fields

local function read_laned()
  local read = call('HMGET', key('clock'), 'virtual', 'moving', 'aside', 'walked', 'walked_ties')
  clock_fields.virtual, clock_fields.moving = number_in(read[1], 0), count_in(read[2], 0)
  clock_fields.aside = count_in(read[3], 0)
  clock_fields.walked, clock_fields.walked_ties = number_in(read[4]), count_in(read[5], 0)
  clock_fields.is_laned_read = true
end

local function clock_of(name)
  if not clock_fields then
    local read = call('HMGET', key('clock'), 'digest', 'laned', 'prune_at', 'expires_from')
    clock_fields = { digest = read[1], laned = count_in(read[2], 0), prune_at = number_in(read[3], 0),
                     expires_from = number_in(read[4]) }
  end
  if LANED[name] and not clock_fields.is_laned_read then
    read_laned()
  end
  return clock_fields[name]
end
