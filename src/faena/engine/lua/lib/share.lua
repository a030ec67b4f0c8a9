--- What each lane was given, minute by minute: `shares:<minute>`, lane -> jobs * 1000 / weight, and of
-- all lanes together the sum and the sum of squares, out of which comes Jain's index of fairness.
--@include key, tally, lane
--@each shares = {}
local SHARES_TTL_S = 3600
local shares   -- lane -> jobs * 1000 / weight in this call

local function note_share(lane, number, weight)
  shares[lane] = (shares[lane] or 0) + math.floor(1000 * number / weight + 0.5)
end

local function note_throttled(_, opens_at, now)
  if opens_at and opens_at < 1e18 and opens_at > now then
    count('throttled_us', opens_at - now)
  end
end

local function flush_shares(now)
  local lanes = names_in(shares)
  if #lanes == 0 then
    return
  end
  local minute = key('shares:' .. whole(math.floor(now / 60000000)))
  local known, changed, squares, sum = call('HMGET', minute, unpack(lanes)), {}, 0, 0
  for i, lane in ipairs(lanes) do
    local before, added = tonumber(known[i] or 0), shares[lane]
    changed[2 * i - 1], changed[2 * i] = lane, before + added
    sum, squares = sum + added, squares + added * (2 * before + added)
  end
  local added = call('HSET', minute, unpack(changed))
  if added > 0 then
    spread_out(minute, added)
    call('EXPIRE', minute, SHARES_TTL_S)
  end
  count('shares', sum)
  -- A whole counter would overflow, and fail the call, where a lane of small weight is given much.
  call('HINCRBYFLOAT', key('stats:' .. whole(math.floor(now / 60000000))), 'shares_squared', squares)
end
