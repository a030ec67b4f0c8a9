--- Fields of `clock` that nearly every exchange needs, read once a call.
--@include key
--@each clock_fields = nil
local clock_fields

local function clock_of(name)
  if not clock_fields then
    local read = call('HMGET', key('clock'), 'prune_at', 'laned', 'virtual', 'moving')
    clock_fields = { prune_at = tonumber(read[1] or 0), laned = tonumber(read[2] or 0),
                     virtual = tonumber(read[3] or 0), moving = tonumber(read[4] or 0) }
  end
  return clock_fields[name]
end
