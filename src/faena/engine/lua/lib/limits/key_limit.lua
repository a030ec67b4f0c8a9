--- Limits of each key of a tenant: no window holds more claims of one key than its limit.
--   aside:<key>   ready jobs that wait for their key's windows, by score: in no lane, so no job waits behind them
--   aside         keys that have such jobs, by when to look again
-- The claim that meets them at the head of a lane sets them aside; when a window opens, as many as it has
-- room for go back to their places in the lane. They count as laned, and `aside` in the clock counts them.
--@include safe_read, keys, spec_line, lane, sliding_window, packed_window, claimed_specs, cancel_expired, table_names
--@exports clear_head, open_keys, note_taken, spend_keys, put_back_due
local ASIDE_OF_VISIT, ASIDE_OF_CLAIM = 50, 200   -- jobs that are set aside at once
local KEYS_OF_CALL, BACK_OF_CALL = 50, 1000      -- keys that are looked at, jobs that go back
local LOOK_AGAIN_US = 1000000                    -- when those that went back were not claimed

--- What is known of keys in this call: `taken`, claims of it that no window has yet, and `first`, the
-- score of the first job that is set aside.
local function look_at_keys(known, names, conf, now)
  local windows, stored = {}, {}
  for _, name in ipairs(names) do
    known[name] = { name = name, windows = windows_of(conf.key_limits, name), taken = 0, first = math.huge }
    for _, window in ipairs(known[name].windows) do
      windows[#windows + 1], stored[#stored + 1] = window, key(window.name)
    end
    if aside_now() > 0 then
      known[name].first = number_in(call('ZRANGE', key('aside:' .. name), 0, 0, 'WITHSCORES')[2], math.huge)
    end
  end
  for i, value in ipairs(#stored > 0 and call('MGET', unpack(stored)) or {}) do
    look_into(windows[i], value, now)
  end
end

--- Whether the windows have room for one more claim than `number`, and else when.
local function has_room(one, number, now)
  local room, opens_at = room_in_windows(one.windows, number + 1, now)
  return room > number, opens_at
end

--- The keys of jobs by their specs, false for those without one; what is not known yet is looked at.
local function keys_in(known, specs, conf, now)
  local names, fresh, seen = {}, {}, {}
  for i, spec in ipairs(specs) do
    local name = key_in(spec) or false
    names[i] = name
    if name and not known[name] and not seen[name] then
      fresh[#fresh + 1], seen[name] = name, true
    end
  end
  look_at_keys(known, fresh, conf, now)
  return names
end

--- Jobs {id, score, key} leave their lane's set until their keys' windows open.
local function set_aside(lane, jobs)
  local ids, columns, looks = {}, {}, {}
  for i, job in ipairs(jobs) do
    local name = job.one.name
    local column = columns[name] or {}
    ids[i], columns[name] = job.id, column
    column[#column + 1], column[#column + 2] = job.score, job.id
    looks[name] = job.opens_at or looks[name]
  end
  call('ZREM', key('lane:' .. lane), unpack(ids))
  for name, column in pairs(columns) do
    call('ZADD', key('aside:' .. name), unpack(column))
    if looks[name] then
      call('ZADD', key('aside'), looks[name], name)
    end
  end
  context.aside_change = context.aside_change + #ids
end

--- Judge the next jobs of a lane, in their order: how many may start, and those that must wait for their
-- keys, up to `most`. No job starts before one of its key that is set aside and stands before it.
local function judge(keys, pending, first, specs, most, conf, now)
  local names, kept, waiting = keys_in(keys.known, specs, conf, now), {}, {}
  for i = 1, #specs do
    local one, id, score = names[i] and keys.known[names[i]], first[2 * i - 1], first[2 * i]
    local is_open, opens_at = true, nil
    if one then
      is_open, opens_at = has_room(one, one.taken + (pending[one] or 0), now)
    end
    if one and (not is_open or tonumber(score) > one.first) then
      if #waiting == most then
        keys.is_cut = true
        return kept, waiting, true
      end
      one.first = math.min(one.first, tonumber(score))
      waiting[#waiting + 1] = { id = id, score = score, one = one, opens_at = opens_at }
    else
      kept[#kept + 1] = id
      if one then
        pending[one] = (pending[one] or 0) + 1
        keys.judged[id] = one
      end
    end
  end
  return kept, waiting, false
end

--- Set aside what stands in the way of the first `share` jobs of a lane. Returns how many of them may be
-- claimed, and whether there may be more behind what this call has not looked at.
local function clear_head(lane, share, keys, conf, now)
  local pending, cleared, most = {}, 0, math.min(ASIDE_OF_VISIT, keys.left)
  for _ = 0, ASIDE_OF_VISIT do   -- each round but the last sets one aside at least
    local to, is_expired_cut = share, false
    if expired_now(now) then
      to, is_expired_cut = clear_expired_of_lane(lane, cleared, share, now)
    end
    local first, ids = to > cleared and call('ZRANGE', key('lane:' .. lane), cleared, to - 1, 'WITHSCORES') or {}, {}
    for i = 1, #first, 2 do
      ids[#ids + 1] = first[i]
    end
    local specs = look_at_specs(ids, keys.look)
    local kept, waiting, is_cut = judge(keys, pending, first, specs, most, conf, now)
    cleared, most, keys.left = cleared + #kept, most - #waiting, keys.left - #waiting
    if #waiting > 0 then
      set_aside(lane, waiting)
    end
    if is_cut or is_expired_cut or #specs < #ids then
      return cleared, true
    elseif #waiting == 0 or cleared == share then
      return cleared, false
    end
  end
  return cleared, true
end

--- What a claim keeps of keys, or nil where they have no limits; `purse` may have looked at specs.
local function open_keys(conf, purse)
  return conf.key_limits and { known = {}, judged = {}, left = ASIDE_OF_CLAIM, look = purse and purse.look or new_look() }
end

--- Jobs have left their lane to be claimed; their windows are written when the claim is complete.
local function note_taken(keys, ids, from)
  for i = from, #ids do
    local one = keys.judged[ids[i]]
    if one then
      one.taken = one.taken + 1
    end
  end
end

--- Write what was claimed, after what was given back was taken out of it, into the windows of its keys.
local function spend_keys(keys, ids, now)
  local numbers, looks = {}, {}
  for _, id in ipairs(ids) do
    local one = keys.judged[id]
    if one then
      numbers[one] = (numbers[one] or 0) + 1
    end
  end
  for one, number in pairs(numbers) do
    local is_open, opens_at = has_room(one, number, now)
    spend_in_windows(one.windows, number, now)
    if one.first < math.huge and not is_open then   -- else those that went back, or the next look, have the room
      looks[#looks + 1], looks[#looks + 2] = opens_at, one.name
    end
  end
  if #looks > 0 then
    call('ZADD', key('aside'), 'XX', unpack(looks))
  end
end

--- The first jobs of a key go back to their lane: returns it, how many they are, and when to look again
-- (nil when none are left).
local function put_back_first(one, number, conf, now)
  local set = key('aside:' .. one.name)
  local is_cut, gone = false, 0
  if expired_now(now) then
    number, is_cut, gone = clear_expired('aside:' .. one.name, 0, number, nil, now)
    context.laned_change, context.aside_change = context.laned_change - gone, context.aside_change - gone
  end
  local popped, column = call('ZPOPMIN', set, number), {}
  if not popped[1] then
    return nil, 0, is_cut and now or nil
  end
  local lane = lane_in(call('HGET', key('specs'), popped[1])) or COMMON
  for i = 1, #popped, 2 do
    column[i], column[i + 1] = popped[i + 1], popped[i]
  end
  call('ZADD', key('lane:' .. lane), unpack(column))
  context.aside_change = context.aside_change - #popped / 2
  local look_at = conf.key_limits and now + LOOK_AGAIN_US or now
  for _, window in ipairs(one.windows) do
    look_at = math.min(look_at, window.oldest and window.oldest + window.per_us or look_at)   -- there is more room then
  end
  return lane, #popped / 2, call('EXISTS', set) == 1 and look_at or nil
end

--- Keys whose instant has come are looked at.
local function put_back_due(conf, now)
  local due = call('ZRANGE', key('aside'), '-inf', now, 'BYSCORE', 'LIMIT', 0, KEYS_OF_CALL)
  local known, lanes, looks, over, left = {}, {}, {}, {}, BACK_OF_CALL
  look_at_keys(known, due, conf, now)
  for _, name in ipairs(due) do
    local one, lane, number, look_at = known[name], nil, 0, nil
    local room, opens_at = room_in_windows(one.windows, BACK_OF_CALL, now)
    if room == 0 then
      look_at = opens_at
    elseif left > 0 then
      lane, number, look_at = put_back_first(one, math.min(room, left), conf, now)
    else
      look_at = now
    end
    left = left - number
    if lane then
      lanes[lane] = true
    end
    if look_at then
      looks[#looks + 1], looks[#looks + 2] = look_at, name
    else
      over[#over + 1] = name
    end
  end
  if #looks > 0 then
    call('ZADD', key('aside'), unpack(looks))
  end
  if #over > 0 then
    call('ZREM', key('aside'), unpack(over))
  end
  if next(lanes) then
    enter_ring(names_in(lanes))
  end
end
