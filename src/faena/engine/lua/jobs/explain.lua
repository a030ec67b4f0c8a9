--- Why a job waits: every gate in front of it, how many jobs come first, and how fast they are served.
-- states   none
-- keys     all zsets · specs, marks, holds, tenants, lanes, heads, about, conf hashes · window lists · stats
--@args     id
-- returns  now · state ('' when unknown) · (gate · detail · until_us, 0 when unknown) … · jobs that come first · claims of
--          this minute and of those before · (fact · value) …
-- gates    delayed (why it was snoozed) · parked (how often, why) · behind (a job, its state) · unserved (the shard) ·
--          slots (their number) · held (reason) · max_running · limit (max/window_us, and /unit where it is by cost) ·
--          tenant_moving · tenant_held · tenant_max_running · tenant_limit · key_limit · turn (lanes that come first)
-- facts    sure_at, likely_at (when limits have room: at the earliest, and behind all that come first) · leader (the job that
--          it waits for), by (its chain, or `unique`) · lane_ahead (jobs of its lane before it) · lane_pace (claims of its
--          lane, as above, parted by spaces) · delayed_by (delayed, retry, snoozed, parked) · others (jobs that may come first
--          though they are not counted among those: due before its gates open, or ready now if it is delayed)
--@flags no-writes
--@include now, queue_settings, job_state, job_metadata, spec_line, closed_windows, explain_gates, unique_claim, keys
--@include safe_read, explain_pace, explain_others, clock_fields
local WORKERS = 200   -- whose slots are added up
local conf, facts = conf_now(), {}

local function fact(name, value)
  facts[#facts + 1], facts[#facts + 2] = name, tostring(value)
end

--- How many jobs the workers run at a time; nil where one has not said it.
local function slots_now()
  local names, slots = call('ZRANGE', key('workers'), now, '+inf', 'BYSCORE', 'LIMIT', 0, WORKERS), 0
  for _, about in ipairs(#names > 0 and #names < WORKERS and call('HMGET', key('about'), unpack(names)) or { false }) do
    local number = about and count_in(string.match(about, ' slots=(%d+)'))
    if not number then
      return nil
    end
    slots = slots + number
  end
  return slots
end

local function explain_workers()
  local slots = slots_now()
  if call('ZCOUNT', key('workers'), now, '+inf') == 0 then
    gate('unserved', string.match(key(''), '{(.*)}'))
  elseif slots and call('ZCARD', key('running')) >= slots then
    gate('slots', slots)
  end
end

local function explain_queue(ahead)
  explain_workers()
  local holds = call('HGETALL', key('holds'))
  for i = 1, #holds, 2 do
    local until_at = number_in(string.match(holds[i + 1], '^%S+'), -1)
    if until_at == 0 or until_at > now then
      gate('held', holds[i], until_at)
    end
  end
  if conf.max_running and call('ZCARD', key('running')) >= conf.max_running then
    gate('max_running', conf.max_running)
  end
  explain_limits('limit', windows_now(conf.limits, now), now, ahead)
  explain_costs('limit', small_windows(conf.costs, nil, id, ahead.set, now))
end

--- Where a ready job is: how many come first in its lane, or among those set aside for its key, and in all. Lanes take
-- turns, so before the n-th job of a lane about n of every other lane are served.
local function line_of(lane, name)
  if not lane then
    local rank = call('ZRANK', key('ready'), id)   -- where others have lanes, those may be overtaken
    return { own = clock_of('laned') == 0 and rank or 0, ahead = rank, aside = 0 }
  end
  local rank, turn = call('ZRANK', key('lane:' .. lane), id), call('ZRANK', key('ring'), lane)
  if not rank then
    local aside = name and call('ZRANK', key('aside:' .. name), id) or 0
    return { own = 0, ahead = aside, aside = aside }
  end
  local ahead = rank * math.max(1, call('ZCARD', key('ring'))) + (turn or 0)
  return { own = rank, ahead = math.min(ahead, call('ZCARD', key('ready'))), aside = 0, turn = turn or nil }
end

--- Which of the jobs before it a limit counts in any case: not those that may expire, and not those of a lane whose keys
-- may keep them back.
local function counted(number, likely, set)
  local is_sure = not clock_of('expires_from') and not conf.key_limits
  return { sure = is_sure and number or 0, likely = likely, set = is_sure and number > 0 and set or nil }
end

local function explain_blocked(chain, mark, score)
  local leader = chain and call('ZSCORE', key('tail:' .. chain), id) and call('HGET', key('heads'), chain)
  fact('by', leader and chain or 'unique')
  leader = leader or (mark and mark.u and call('GET', unique_key(mark.m, mark.u)))
  fact('leader', leader or '')
  local state, due = state_of(leader or '')
  gate('behind', (leader or '?') .. ' ' .. (state or 'gone'), state == 'delayed' and due or 0)
  if not chain and tonumber(score) > now then
    gate('delayed', '', score)
  end
  return chain and call('ZRANK', key('tail:' .. chain), id) or 0, state == 'delayed' and due
end

local function explain_delay(mark, due)
  local parked = mark.y and whole(count_in(mark.y[1]) or 1) .. ' ' .. tostring(mark.y[2])
  gate(parked and 'parked' or 'delayed', parked or mark.r or '', due)
  fact('delayed_by', parked and 'parked' or mark.r and 'snoozed' or (mark.a or 0) > 0 and 'retry' or 'delayed')
end

local state, score = state_of(id)
local line, leader_due = { own = 0, ahead = 0, aside = 0 }, nil
if state and is_waiting(state) then
  local spec = call('HGET', key('specs'), id)
  local lane, chain = lane_in(spec)
  local name = key_in(spec)
  if state == 'delayed' then
    explain_delay(marks_of({ id })[id] or {}, score)
  elseif state == 'blocked' then
    line.ahead, leader_due = explain_blocked(chain, marks_of({ id })[id], score)
  else
    line = line_of(lane, name)
  end
  local of_queue = state == 'ready' and line.ahead or 0
  local set = lane and 'lane:' .. lane or 'ready'
  explain_queue(counted(line.own, of_queue, set))
  if lane then
    explain_tenant(lane, id, conf, now, counted(line.own, line.own, set))
    fact('lane_ahead', whole(line.own))
    fact('lane_pace', table.concat(lane_pace_now(lane, now), ' '))
  end
  if name then
    explain_limits('key_limit', lane_windows_now(conf.key_limits, name, now), now,
      { sure = clock_of('expires_from') and 0 or line.aside, likely = line.aside })
  end
  if line.turn then
    gate('turn', line.turn)
  end
  fact('sure_at', whole(context.sure_at))
  fact('likely_at', whole(context.likely_at))
  fact('others', whole(others_of(now, state, score, leader_due)))
end
return { now, state or '', context.gates, line.ahead, pace_now(now), facts }
