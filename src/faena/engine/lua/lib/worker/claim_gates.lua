--- What stands between ready jobs and a claim: holds, max_running, limits.
--@include safe_read, keys, queue_rate_limits, idle_queue
--@exports allowed
--- The instant the longest hold ends (math.huge: until released) and its reason, or nil.
local function held_until(now)
  local holds, until_at, reason = context.is_only_ready and {} or call('HGETALL', key('holds')), nil, nil
  for i = 1, #holds, 2 do
    local ends = number_in(string.match(holds[i + 1], '^%S+'), -1)   -- an unreadable hold has ended
    ends = ends == 0 and math.huge or ends
    if ends <= now then
      call('HDEL', key('holds'), holds[i])
    elseif not until_at or ends > until_at then
      until_at, reason = ends, holds[i]
    end
  end
  return until_at, reason
end

--- How many of `want` may be claimed: number, the gate that says less, when it may say more.
-- A caller that wants none still learns the gate, so that it does not wake others for nothing.
local function allowed(want, conf, now)
  local until_at, reason = held_until(now)
  if until_at then
    return 0, 'held ' .. reason, until_at
  end
  local grant, gate, opens_at = math.max(want, 1), '', nil
  if conf.max_running then
    local room = conf.max_running - call('ZCARD', key('running'))
    if room < grant then
      grant, gate = math.max(room, 0), 'max_running'
    end
  end
  if conf.limits then
    local room, at = ask_limits(conf.limits, grant, now)
    if room < grant then
      grant, gate, opens_at = room, 'limit', at
    end
  end
  return math.min(grant, want), gate, opens_at
end
