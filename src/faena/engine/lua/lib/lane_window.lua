--- The windows of lanes' limits. A claim asks many lanes, so it must ask them in one command: what was
-- claimed in a window is one value, `claims:<window><lane>`, packed {sum, instant, number, …}, oldest
-- first. It changes only when a claim is granted.
--@include key, window, learn
local LANE_BUCKETS = 100   -- as in window.lua, fewer, because a value is read as a whole

--- What is left in the window of what was claimed.
local function still_in(window, packed, now)
  local entries = packed and cmsgpack.unpack(packed) or { 0 }
  local first, sum = 2, entries[1]
  while entries[first] and entries[first] <= now - window.per_us do
    sum, first = sum - entries[first + 1], first + 2
  end
  if first == 2 then
    return entries
  end
  return { sum, unpack(entries, first) }
end

--- The windows of lanes by their limits' texts, in the same order, with what they hold.
local function read_lane_windows(lanes, texts, now)
  local windows, all, names = {}, {}, {}
  for i, lane in ipairs(lanes) do
    windows[i] = texts[i] and learned_windows(texts[i], lane, now) or {}
    for _, window in ipairs(windows[i]) do
      all[#all + 1], names[#names + 1] = window, key(window.name)
    end
  end
  for i, packed in ipairs(#names > 0 and call('MGET', unpack(names)) or {}) do
    all[i].entries = still_in(all[i], packed, now)
  end
  for i = 1, #lanes do
    forget_recovered(windows[i])
  end
  return windows
end

--- How many of `want` the windows have room for, and when the one that has least opens.
local function room_in_windows(windows, want, now)
  local opens_at = nil
  for _, window in ipairs(windows) do
    local room = window.max - window.entries[1]
    if room < want then
      want, opens_at = math.max(room, 0), (window.entries[2] or now) + window.per_us
    end
  end
  return want, opens_at
end

--- Write `number` granted claims into the windows.
local function spend_in_windows(windows, number, now)
  for _, window in ipairs(windows) do
    local entries, size, width = window.entries, #window.entries, window.per_us / LANE_BUCKETS
    local last = size > 1 and window.limit > LANE_BUCKETS and entries[size - 1]
    if last and math.floor(last / width) == math.floor(now / width) then
      entries[size - 1], entries[size] = math.max(last, now), entries[size] + number
    else
      entries[size + 1], entries[size + 2] = now, number
    end
    entries[1] = entries[1] + number
    call('SET', key(window.name), cmsgpack.pack(entries), 'PX', math.ceil(window.per_us / 1000) + 60000)
  end
end
