--- Fields of `clock` that nearly every exchange needs, read once a call; those of queues with lanes when asked for.
--@include safe_read, keys
--@exports clock_of
--@state clock_fields = false
local LANED = { virtual = true, moving = true, aside = true, walked = true, walked_ties = true }


local function read_laned(fields)
  local read = call('HMGET', key('clock'), 'virtual', 'moving', 'aside', 'walked', 'walked_ties')
  fields.virtual, fields.moving = number_in(read[1], 0), count_in(read[2], 0)
  fields.aside = count_in(read[3], 0)
  fields.walked, fields.walked_ties = number_in(read[4]), count_in(read[5], 0)
  fields.is_laned_read = true
end

local function clock_of(name)
  local fields = context.clock_fields
  if not fields then
    local read = call('HMGET', key('clock'), 'digest', 'laned', 'prune_at', 'expires_from')
    fields = { digest = read[1], laned = count_in(read[2], 0), prune_at = number_in(read[3], 0),
               expires_from = number_in(read[4]) }
    context.clock_fields = fields
  end
  if LANED[name] and not fields.is_laned_read then
    read_laned(fields)
  end
  return fields[name]
end
