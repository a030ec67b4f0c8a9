--- What each lane was given and how it waited, minute by minute.
--   shares:<minute>   lane -> four doubles: jobs started * 1000 / weight · waits measured · their sum ·
--                     how long it had ready jobs and was parked; times in us
--   throttled         lane -> since when it is parked
-- Of all lanes together the stats have the sum of the first and the sum of its squares, out of which
-- comes Jain's index of fairness.
--@include safe_read, keys, now, event_and_stats, listpack, table_names
--@exports note_share, note_parked, flush_shares
--@state shares = {}   -- minute -> lane -> what is to be added
--@state throttles = {}   -- lane -> parked | freed | both (freed, and then parked again) in this call
local MINUTE_US, SHARES_TTL_S = 60000000, 3600

--- What is to be added for a lane in a minute.
local function note_of(minute, lane)
  local notes = context.shares[minute] or {}
  local note = notes[lane] or { 0, 0, 0, 0 }
  context.shares[minute], notes[lane] = notes, note
  return note
end

--- Returns where the wait of such a job may be added: a number and a sum in the second and third place.
local function note_share(lane, number, weight, now)
  local note = note_of(math.floor(now / MINUTE_US), lane)
  note[1] = note[1] + math.floor(1000 * number / weight + 0.5)
  return note
end

--- One that is parked though it was already has been so since then.
local function note_parked(lane)
  local throttles = context.throttles
  throttles[lane] = throttles[lane] == 'freed' and 'both' or throttles[lane] or 'parked'
end

--- A lane was parked from `since` to `now`: each minute has its part of that.
local function note_throttled(lane, since, now)
  local this = math.floor(now / MINUTE_US)
  for minute = math.max(math.floor(since / MINUTE_US), this - SHARES_TTL_S / 60), this do
    local note = note_of(minute, lane)
    note[4] = note[4] + math.min(now, (minute + 1) * MINUTE_US) - math.max(since, minute * MINUTE_US)
  end
  count('throttled_us', now - since)
end

--- Begin and end the times for which lanes are parked.
local function flush_throttles(now)
  local lanes, begun, ended = names_in(context.throttles), {}, {}
  for i, since in ipairs(call('HMGET', key('throttled'), unpack(lanes))) do
    local lane = lanes[i]
    local became = context.throttles[lane]
    if since and became ~= 'parked' and count_in(since, now) < now then
      note_throttled(lane, count_in(since), now)
    end
    if became == 'freed' then
      ended[#ended + 1] = lane
    elseif became == 'both' or not since then
      begun[#begun + 1], begun[#begun + 2] = lane, now
    end
  end
  context.throttles = {}
  if #begun > 0 then
    call('HSET', key('throttled'), unpack(begun))
  end
  if #ended > 0 then
    call('HDEL', key('throttled'), unpack(ended))
  end
end

--- Add to what is known of lanes in a minute.
local function flush_minute(minute, notes)
  local hash, lanes, changed, squares, sum = key('shares:' .. whole(minute)), names_in(notes), {}, 0, 0
  for i, known in ipairs(call('HMGET', hash, unpack(lanes))) do
    local note, given, waits, waited, throttled = notes[lanes[i]], 0, 0, 0, 0
    if known and #known == 32 then
      given, waits, waited, throttled = struct.unpack('>dddd', known)
      given = number_in(given, 0)
    end
    changed[2 * i - 1] = lanes[i]
    changed[2 * i] = struct.pack('>dddd', given + note[1], waits + note[2], waited + note[3], throttled + note[4])
    sum, squares = sum + note[1], squares + note[1] * (2 * given + note[1])
  end
  local added = call('HSET', hash, unpack(changed))
  if added > 0 then
    leave_listpack(hash, added)
    call('EXPIRE', hash, SHARES_TTL_S)
  end
  if sum > 0 then
    count('shares', sum)
    -- A whole counter would overflow, and fail the call, where a lane of small weight is given much.
    pcall(call, 'HINCRBYFLOAT', key('stats:' .. whole(minute)), 'shares_squared', squares)
  end
end

local function flush_shares()
  if next(context.throttles) then
    flush_throttles(now_us())
  end
  if next(context.shares) then
    for minute, notes in pairs(context.shares) do
      flush_minute(minute, notes)
    end
    context.shares = {}
  end
end
