--- Retention by age, count and bytes, in slices: whatever is left over waits for the next call.
--@include safe_read, keys, delete_jobs, retained_bytes, dead_index
--@exports leave_state, drop, prune, prune_all
local PRUNE_EVERY_US = 1000000

--- Jobs leave the set of their state, and what counts or finds them by it.
local function leave_state(state, ids, conf)
  if conf[state .. '_bytes'] then
    subtract_bytes(state, ids)
  end
  if state == 'dead' then
    remove_from_index(ids)
  end
  call('ZREM', key(state), unpack(ids))
end

local function drop(state, ids, conf)
  leave_state(state, ids, conf)
  delete_jobs(ids)
end

--- The oldest of `state` that together keep `excess` bytes; at most `slice`.
local function oldest_worth(state, excess, slice)
  local since, ids = counted_since(state), {}
  local oldest = call('ZRANGE', key(state), 0, slice - 1, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    if excess <= 0 then
      break
    end
    ids[#ids + 1] = oldest[i]
    if tonumber(oldest[i + 1]) >= since then
      excess = excess - call('HSTRLEN', key('specs'), oldest[i])
        - call('HSTRLEN', key('results'), oldest[i])
    end
  end
  return ids
end

--- The oldest of `state` that are over its count, its age or its bytes; at most `slice`.
local function overdue(state, conf, now, slice)
  local set, count, age = key(state), conf[state .. '_count'], conf[state .. '_us']
  local over = count and call('ZCARD', set) - count or 0
  if over > 0 then
    return call('ZRANGE', set, 0, math.min(over, slice) - 1)
  end
  if age then
    local old = call('ZRANGE', set, '-inf', now - age, 'BYSCORE', 'LIMIT', 0, slice)
    if #old > 0 then
      return old
    end
  end
  local bytes = conf[state .. '_bytes']
  local kept = bytes and number_in(call('HGET', key('clock'), state .. '_bytes'), 0) or 0
  return bytes and oldest_worth(state, kept - bytes, slice) or {}
end

local function prune(state, conf, now, slice)
  local ids = overdue(state, conf, now, slice)
  if #ids > 0 then
    drop(state, ids, conf)
  end
  return #ids
end

--- Every finished state, and when to do so again.
local function prune_all(conf, now, slice)
  local most = 0
  for _, state in ipairs({ 'completed', 'dead', 'cancelled' }) do
    most = math.max(most, prune(state, conf, now, slice))
  end
  call('HSET', key('clock'), 'prune_at', most < slice and now + PRUNE_EVERY_US or now)
end
