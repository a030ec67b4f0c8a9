--- What limits hold and when they open, for scripts that only read: nothing is cleared away, unlike with `room_in`.
--@include safe_read, keys, sliding_window, adaptive_limits, packed_window, cost_limit
--@exports windows_now, lane_windows_now, small_windows, room_after
local MOST = 1000   -- claims of a window, or buckets of them

--- `claim_at` tells instant and number of the n-th claim in the window, oldest first, and nothing behind the last. One that
-- is used up has an instant at which it opens.
local function note_claims(window, used, claim_at, now)
  window.used, window.claim_at, window.told = used, claim_at, window.max .. '/' .. whole(window.per_us)
  if used >= window.max then
    window.opens_at = (claim_at(1) or now) + window.per_us
  end
  return window
end

--- The windows of the queue's limits; as few of their claims are read as say when they open.
local function windows_now(text, now)
  local windows = learned_windows(text, nil, now)
  for _, window in ipairs(windows) do
    local list, past = call('LRANGE', key(window.name), 0, -1), 0
    local used = #list > 0 and count_in(call('HGET', key('clock'), window.name), 0) or 0
    while list[past + 1] do
      local instant, number = entry_of(list[past + 1])
      if instant > now - window.per_us then
        break
      end
      past, used = past + 1, used - number
    end
    note_claims(window, math.max(0, used), function(n)
      if list[past + n] then
        return entry_of(list[past + n])
      end
    end, now)
  end
  return windows
end

--- Those of a lane, or of a key.
local function lane_windows_now(text, lane, now)
  local windows = learned_windows(text, lane, now)
  for _, window in ipairs(windows) do
    look_into(window, call('GET', key(window.name)), now)
    note_claims(window, window.sum, function(n)
      local at = window.from + 16 * (n - 1)
      if at <= #window.stored then
        return struct.unpack('>dd', window.stored, at)
      end
    end, now)
  end
  return windows
end

--- The instant from which a window has room for one claim more than `ahead`, all of them made as soon as it has: each
-- needs the one that came `max` before it to have left. 0 if that is now.
local function room_after(window, ahead, now)
  if window.max < 1 then
    return 0   -- a shard may have no part of a limit
  end
  local rest = ahead % window.max
  local rounds, left, opens_at = (ahead - rest) / window.max, window.used + rest + 1 - window.max, now
  for n = 1, MOST do
    local instant, number = window.claim_at(n)
    if left <= 0 or not instant then
      break
    end
    left, opens_at = left - number, instant + window.per_us
  end
  opens_at = opens_at + rounds * window.per_us
  return opens_at > now and opens_at or 0
end

--- Limits by cost that have no room for a job, or for the first of `set` (or nil), which starts before it.
local function small_windows(text, lane, id, set, now)
  local windows, found = look_into_costs(cost_windows(text, lane), now), {}
  local first = set and #windows > 0 and call('ZRANGE', key(set), 0, 0)[1] or id
  local own, its = costs_in(call('HGET', key('specs'), id)), costs_in(call('HGET', key('specs'), first))
  for _, window in ipairs(windows) do
    local cost = math.max(own[window.unit] or 1, its[window.unit] or 1)
    if window.sum + cost > window.max then
      local limit = window.max .. '/' .. whole(window.per_us) .. '/' .. window.unit
      found[#found + 1] = { limit = limit, opens_at = has_room_at(window, cost) }
    end
  end
  return found
end
