--- Limits that learn: when a provider says "too many", a limit falls, and then it rises again slowly.
-- `learned`: window -> "share instant", what the limit fell to and when. A limit that never fell, or
-- has recovered, has none. Only ever less is granted than the limit says.
--@include safe_read, keys, sliding_window
--@exports learned_windows, forget_recovered, lower_limits
--@state has_learned = nil   -- asked once a call


--- The share of a limit that is granted now, by what is stored of it.
local function share_now(stored, window, now)
  local share, at = string.match(stored or '', '^(%S+) (%S+)$')
  share, at = number_in(share), number_in(at, now)
  local rise = 0.05   -- so much more a window
  if not share then
    return 1
  end
  return math.min(1, share + rise * math.max(0, now - at) / window.per_us)
end

--- Windows with the limits that count now.
local function learned_windows(text, lane, now)
  local windows = windows_of(text, lane)
  if context.has_learned == nil then
    context.has_learned = call('EXISTS', key('learned')) == 1
  end
  for _, window in ipairs(context.has_learned and windows or {}) do
    local share = share_now(call('HGET', key('learned'), window.name), window, now)
    window.max, window.has_recovered = math.max(1, math.floor(window.max * share + 1e-6)), share == 1
  end
  return windows
end

--- A window that has recovered needs no record.
local function forget_recovered(windows)
  for _, window in ipairs(context.has_learned and windows or {}) do
    if window.has_recovered then
      call('HDEL', key('learned'), window.name)
    end
  end
end

--- A provider has refused: let the limits of the queue, or of a lane, fall.
local function lower_limits(text, lane, now)
  local fall, least = 0.7, 0.1   -- times as much; not below
  for _, window in ipairs(windows_of(text, lane)) do
    local share = share_now(call('HGET', key('learned'), window.name), window, now)
    call('HSET', key('learned'), window.name, math.max(least, share * fall) .. ' ' .. whole(now))
    context.has_learned = true
  end
end
