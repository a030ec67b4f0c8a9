--- How fast a queue, and a lane of it, have been served of late, for scripts that only read.
--@include safe_read, keys, minutes, tenant_override
--@exports pace_now, lane_pace_now
local MINUTES = 5   -- that are over, beside this one

local function minute_before(now, number)
  return now - number * 60000000
end

--- How many jobs were claimed in this minute, in the one before, and so on.
local function pace_now(now)
  local claimed = {}
  for i = 0, MINUTES do
    claimed[i + 1] = count_in(call('HGET', minute_of(minute_before(now, i)), 'claimed'), 0)
  end
  return claimed
end

--- The same of a lane; its shares are jobs * 1000 / weight.
local function lane_pace_now(lane, now)
  local weight, claimed = weight_of(read_control(call('HGET', key('tenants'), lane))), {}
  for i = 0, MINUTES do
    local share = call('HGET', key('shares:' .. whole(math.floor(minute_before(now, i) / 60000000))), lane)
    local given = share and #share == 32 and number_in(struct.unpack('>d', share), 0) or 0
    claimed[i + 1] = math.floor(given * weight / 1000 + 0.5)
  end
  return claimed
end
