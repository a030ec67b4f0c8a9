--- Why a job waits: every gate in front of it, and how many jobs come first.
-- states   none
-- keys     all zsets · specs, marks, holds, tenants, lanes, heads, conf hashes · window lists · stats
--@args     id
-- returns  now · state ('' when unknown) · (gate · detail · until_us, 0 when unknown) … · jobs that
--          come first · claims of the last full minute · claims of this one
-- gates    delayed (why it was snoozed) · parked (how often, why) · behind (a job, its state) · unserved (the shard) · held (reason) · max_running · limit
--          (max/window_us, and /unit where it is by cost) · tenant_moving · tenant_held · tenant_max_running · tenant_limit · key_limit · turn
--          (lanes that come first)
--@flags no-writes
--@include now, queue_settings, job_state, job_metadata, spec_line, closed_windows, explain_gates, unique_claim, keys
--@include safe_read
local conf = conf_now()

local function explain_queue(lane)
  if call('ZCOUNT', key('workers'), now, '+inf') == 0 then
    gate('unserved', string.match(key(''), '{(.*)}'))
  end
  local holds = call('HGETALL', key('holds'))
  for i = 1, #holds, 2 do
    local until_at = tonumber(string.match(holds[i + 1], '^%S+'))
    if until_at == 0 or until_at > now then
      gate('held', holds[i], until_at)
    end
  end
  if conf.max_running and call('ZCARD', key('running')) >= conf.max_running then
    gate('max_running', conf.max_running)
  end
  explain_limits('limit', closed_windows(conf.limits, now))
  explain_limits('limit', small_windows(conf.costs, nil, id, lane and 'lane:' .. lane or 'ready', now))
end

--- How many jobs come before one that is ready. Lanes take turns, so before the n-th job of a lane
-- about n of every other lane are served.
local function first_in_line(lane, name)
  if not lane then
    return call('ZRANK', key('ready'), id)
  end
  local rank, turn = call('ZRANK', key('lane:' .. lane), id), call('ZRANK', key('ring'), lane)
  if not rank then
    return name and call('ZRANK', key('aside:' .. name), id) or 0
  end
  if turn then
    gate('turn', turn)
  end
  return math.min(rank * math.max(1, call('ZCARD', key('ring'))) + (turn or 0), call('ZCARD', key('ready')))
end

local function explain_blocked(chain, mark)
  local leader = chain and call('ZSCORE', key('tail:' .. chain), id) and call('HGET', key('heads'), chain)
  leader = leader or (mark and mark.u and call('GET', unique_key(mark.m, mark.u)))
  local state, score = state_of(leader or '')
  gate('behind', (leader or '?') .. ' ' .. (state or 'gone'), state == 'delayed' and score or 0)
  return chain and call('ZRANK', key('tail:' .. chain), id) or 0
end

local function explain_delay(mark, due)
  local parked = mark.y and whole(count_in(mark.y[1]) or 1) .. ' ' .. tostring(mark.y[2])
  gate(parked and 'parked' or 'delayed', parked or mark.r or '', due)
end

local state, score = state_of(id)
local ahead, lane, chain, name = 0, nil, nil, nil
if state and is_waiting(state) then
  local spec = call('HGET', key('specs'), id)
  lane, chain = lane_in(spec)
  name = key_in(spec)
  if state == 'delayed' then
    explain_delay(marks_of({ id })[id] or {}, score)
  elseif state == 'blocked' then
    ahead = explain_blocked(chain, marks_of({ id })[id])
  end
  explain_queue(lane)
  if lane then
    explain_tenant(lane, id, conf, now)
  end
  if name then
    explain_limits('key_limit', closed_lane_windows(conf.key_limits, name, now))
  end
  if state == 'ready' then
    ahead = first_in_line(lane, name)
  end
end
local minute = math.floor(now / 60000000)
return { now, state or '', context.gates, ahead, call('HGET', key('stats:' .. whole(minute - 1)), 'claimed') or 0,
  call('HGET', key('stats:' .. whole(minute)), 'claimed') or 0 }
