--- Limits that are used up, for scripts that only read: nothing is cleared away, unlike with `room_in`.
--@include keys, sliding_window, adaptive_limits, packed_window, cost_limit
--@exports closed_windows, closed_lane_windows, small_windows
--- What a window says when it is used up: its limit, and the instant it opens.
local function closed(window, used, first, now)
  if used >= window.max then
    return { limit = window.max .. '/' .. whole(window.per_us), opens_at = (first or now) + window.per_us }
  end
end

local function closed_windows(text, now)
  local found = {}
  for _, window in ipairs(learned_windows(text, nil, now)) do
    local used, first = 0, nil
    for _, entry in ipairs(call('LRANGE', key(window.name), 0, -1)) do
      local instant, number = entry_of(entry)
      if instant > now - window.per_us then
        first, used = first or instant, used + number
      end
    end
    found[#found + 1] = closed(window, used, first, now)
  end
  return found
end

local function closed_lane_windows(text, lane, now)
  local found = {}
  for _, window in ipairs(learned_windows(text, lane, now)) do
    look_into(window, call('GET', key(window.name)), now)
    found[#found + 1] = closed(window, window.sum, window.oldest, now)
  end
  return found
end

--- Limits by cost that have no room for a job, or for the first of `set`, which starts before it.
local function small_windows(text, lane, id, set, now)
  local windows, found = look_into_costs(cost_windows(text, lane), now), {}
  local first = #windows > 0 and call('ZRANGE', key(set), 0, 0)[1] or id
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
