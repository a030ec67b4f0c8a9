--- The windows of lanes' limits. A claim asks many lanes, so it must ask them in one command: what was
-- claimed in a window is one value, `claims:<window><lane>`: a sum, then instant and number of each
-- claim, oldest first, all as doubles: 8 bytes and 16 for each. It changes only when a claim is granted, and
-- neither asking nor granting decodes more of it than its ends. Limits by key and by cost have such windows too.
--@include keys, adaptive_limits
--@exports LANE_BUCKETS, look_into, read_lane_windows, room_in_windows, spend_in_windows
local LANE_BUCKETS = 100   -- as in sliding_window.lua, fewer, because a value is read as a whole

--- Note what a window holds now: `sum`, `oldest` (the instant of the first claim in it, or nil), and
-- `stored`, of which what begins at `from` still counts.
local function look_into(window, stored, now)
  stored = stored and #stored % 16 == 8 and stored or nil
  local sum, from, since = stored and struct.unpack('>d', stored) or 0, 9, now - window.per_us
  for at = 9, stored and #stored or 0, 16 do
    local instant, number = struct.unpack('>dd', stored, at)
    if instant > since then
      window.oldest = instant
      break
    end
    sum, from = sum - number, at + 16
  end
  if sum - sum ~= 0 then
    sum, from, stored, window.oldest = 0, 9, '', nil
  end
  window.sum, window.from, window.stored = sum, from, stored or ''
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
  for i, stored in ipairs(#names > 0 and call('MGET', unpack(names)) or {}) do
    look_into(all[i], stored, now)
  end
  for i = 1, context.has_learned and #lanes or 0 do
    forget_recovered(windows[i])
  end
  return windows
end

--- How many of `want` the windows have room for, and when the one that has least opens.
local function room_in_windows(windows, want, now)
  local opens_at = nil
  for _, window in ipairs(windows) do
    local room = math.floor(window.max - window.sum)
    if room < want then
      want, opens_at = math.max(room, 0), (window.oldest or now) + window.per_us
    end
  end
  return want, opens_at
end

--- Write `number` granted claims into the windows, or what a claim takes of each; a lane that is visited again is looked into anew.
-- `write` runs the commands, if not `call`.
local function spend_in_windows(windows, number, now, write)
  write = write or call
  for _, window in ipairs(windows) do
    local stored, width, last = window.stored, window.per_us / LANE_BUCKETS, #window.stored - 15
    local instant, before, rest = now, 0, #stored
    if last >= window.from then
      local at, held = struct.unpack('>dd', stored, last)
      instant = math.max(at, now)   -- in order, also when the clock was put back
      if window.limit > LANE_BUCKETS and math.floor(at / width) == math.floor(now / width) then
        before, rest = held, last - 1
      end
    end
    number = window.taking or number
    stored = struct.pack('>d', window.sum + number) .. string.sub(stored, window.from, rest)
      .. struct.pack('>dd', instant, before + number)
    write('SET', key(window.name), stored, 'PX', math.ceil(window.per_us / 1000) + 60000)
  end
end
