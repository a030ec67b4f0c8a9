--- Exact sliding windows: no stretch of time as long as a window holds more claims than its limit.
-- A window is a list of "instant count", oldest first, and a sum in `clock`. Limiter state changes
-- only when a claim is granted; a refused claim burns nothing. Lanes have theirs in packed_window.lua.
--@include safe_read, keys
--@exports entry_of, room_in, windows_of, spend
local known_limits = { number = 0 }   -- by text, from one call to the next
local LONGEST_US = 1e15   -- thirty years: a key lives no longer
local BUCKETS = 1000   -- a window for more claims than this keeps them in so many buckets, each
                       -- leaving with its youngest claim: late, never early

local function entry_of(text)
  local instant, number = string.match(text, '^(%d+) (%d+)$')
  return number_in(instant, 0), count_in(number, 0)   -- what cannot be read has left its window
end

--- How many claims the window has room for now, and else the instant it will have.
local function room_in(window, now)
  local list, sums, field = key(window.name), key('clock'), window.name
  local used = count_in(call('HGET', sums, field), 0)
  local first = call('LINDEX', list, 0)
  if not first and used > 0 then
    call('HDEL', sums, field)   -- the list has outlived its window and expired
    used = 0
  end
  for _ = 1, BUCKETS do
    local instant, number = nil, nil
    if first then
      instant, number = entry_of(first)
    end
    if not instant or instant > now - window.per_us then
      return window.max - used, instant and instant + window.per_us
    end
    call('LPOP', list)
    used = bump(sums, field, -number)
    first = call('LINDEX', list, 0)
  end
  return window.max - used, now
end

--- Limits by their text, max, per, …, read once: many lanes have the same.
local function limits_in(text)
  local limits = known_limits[text]
  if not limits then
    known_limits, limits = known_limits.number < 1000 and known_limits or { number = 0 }, {}
    for max, per in string.gmatch(text, '(%d+)/(%d+)') do
      if tonumber(per) <= LONGEST_US then
        limits[#limits + 1], limits[#limits + 2] = tonumber(max), per
      end
    end
    known_limits[text], known_limits.number = limits, known_limits.number + 1
  end
  return limits
end

--- The windows of limits, of the queue or of a lane.
local function windows_of(text, lane)
  local windows, limits = {}, limits_in(text or '')
  for i = 1, #limits, 2 do
    local max, per = limits[i], limits[i + 1]
    windows[(i + 1) / 2] = { max = max, limit = max, per_us = tonumber(per), sum = 0, from = 9, stored = '', oldest = nil,
                             name = lane and 'claims:' .. per .. lane or 'window:' .. per }
  end
  return windows
end

--- Write `number` granted claims into the window.
local function spend(window, now, number)
  local list = key(window.name)
  local last = window.max > BUCKETS and call('LINDEX', list, -1)
  local width = window.per_us / BUCKETS
  local instant, held = nil, 0
  if last then
    instant, held = entry_of(last)
  end
  if instant and math.floor(instant / width) == math.floor(now / width) then
    call('LSET', list, -1, whole(math.max(instant, now)) .. ' ' .. (held + number))
  else
    call('RPUSH', list, whole(now) .. ' ' .. number)
  end
  call('EXPIRE', list, math.ceil(window.per_us / 1000000) * 2 + 60)
  bump(key('clock'), window.name, number)
end
