--- The bytes finished jobs keep: their specs and results. Counted only where retention bounds them,
-- and only for jobs finished since that bound was set (`<state>_since` in the clock), so that a bound
-- may come and go.
--@include read, key
--@exports bytes_in, counted_since
--- Of one column, `specs` or `results`.
local function bytes_in(column, ids)
  local total = 0
  for _, value in ipairs(#ids > 0 and call('HMGET', key(column), unpack(ids)) or {}) do
    total = total + (value and #value or 0)
  end
  return total
end

local function counted_since(state)
  return number_in(call('HGET', key('clock'), state .. '_since'), 0)
end
