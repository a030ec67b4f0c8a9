--- The bytes finished jobs keep: their specs and results. Counted only where retention bounds them,
-- and only for jobs finished since that bound was set (`<state>_since` in the clock), so that a bound
-- may come and go.
--@include key
local function bytes_of(ids)
  if #ids == 0 then
    return 0
  end
  local total = 0
  for _, column in ipairs({ 'specs', 'results' }) do
    local values = call('HMGET', key(column), unpack(ids))
    for i = 1, #ids do
      total = total + (values[i] and #values[i] or 0)
    end
  end
  return total
end

local function counted_since(state)
  return tonumber(call('HGET', key('clock'), state .. '_since') or 0)
end
