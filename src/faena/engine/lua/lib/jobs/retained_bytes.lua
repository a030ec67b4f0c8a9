--- The bytes finished jobs keep: their specs and results. Counted only where retention bounds them,
-- and only for jobs finished since that bound was set (`<state>_since` in the clock), so that a bound
-- may come and go.
--@include safe_read, keys
--@exports counted_since, add_bytes, subtract_bytes

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

--- Jobs have just entered `state` at `now`; `kept` are the bytes of their results.
local function add_bytes(state, ids, kept, now)
  local bytes = now >= counted_since(state) and bytes_in('specs', ids) + kept or 0
  bump(key('clock'), state .. '_bytes', bytes)
end

--- Jobs that stand in `state` are about to leave it. They come oldest first: where that one was
-- counted, all were.
local function subtract_bytes(state, ids)
  local since, counted = counted_since(state), ids
  if tonumber(call('ZSCORE', key(state), ids[1])) < since then
    counted = {}
    for i, score in ipairs(call('ZMSCORE', key(state), unpack(ids))) do
      counted[#counted + 1] = tonumber(score) >= since and ids[i] or nil
    end
  end
  bump(key('clock'), state .. '_bytes', -bytes_in('specs', counted) - bytes_in('results', counted))
end
