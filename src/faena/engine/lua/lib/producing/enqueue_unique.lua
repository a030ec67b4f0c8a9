--- Enqueue a job that makes a unique claim.
--@include keys, event_and_stats, job_metadata, job_state, enqueue_batch, unique_claim, delete_jobs, waiting, lane
--@include history_record
--@exports enqueue_unique
local function replace(intake, index, id, state)
  call('ZREM', key(state), id)
  leave_waiting({ id }, state)
  record_history('replaced', { id }, marks_of({ id }), intake.conf, intake.now)
  delete_jobs({ id })
  intake.depth = intake.depth - 1
  answer(intake, index, 'REPLACED', id, state)
  intake.replaced[#intake.replaced + 1] = id
end

local function hold_claim(intake, id, spec, facts, delay)
  call('SET', unique_key(facts.mode, facts.unique), id)
  save_mark(id, { u = facts.unique, m = facts.mode, w = facts.tells, e = expiry_of(intake, facts),
                  q = delay and delay > 0 and intake.now or nil })
  add(intake, id, spec, delay, facts)
end

--- The holder runs or has run: the newest job waits behind it, blocked, scored by when it may run.
local function follow(intake, index, id, spec, facts, holder)
  local mark = marks_of({ holder })[holder] or { u = facts.unique, m = facts.mode }
  local former = follower_of(mark)
  if former then
    replace(intake, index, former, 'blocked')
  end
  mark.n = id
  save_mark(holder, mark)
  save_mark(id, { u = facts.unique, m = facts.mode, w = facts.tells, e = expiry_of(intake, facts),
                  q = intake.now })
  admit(intake, id, spec)
  if facts.lane then
    count_lane(facts.lane, 1, 0)
  end
  call('HSET', key('specs'), id, spec)
  call('ZADD', key('blocked'), intake.now + math.max(0, delay_of(intake, facts) or 0), id)
end

local function throttled(intake, index, id, spec, facts)
  local claim = unique_key(facts.mode, facts.unique)
  local held = call('GET', claim)
  local holder, until_at = string.match(held or '', '^(%S+) (%d+)$')
  if holder and tonumber(until_at) > intake.now then
    answer(intake, index, 'DUPLICATE', holder, (state_of(holder)) or 'removed')
    count('duplicate', 1)
    return
  end
  local ttl = tonumber(facts.ttl)
  call('SET', claim, id .. ' ' .. whole(intake.now + ttl), 'PX', math.ceil(ttl / 1000))
  add(intake, id, spec, delay_of(intake, facts), facts)
end

--- A job that has been delivered once may have done some of its work.
local function has_started(mark)
  return mark and (mark.a or mark.l or mark.n)
end

--- What an existing holder in `state` means for a newcomer: duplicate, replace, follow or nothing. A debounce
-- without a time is `replace`: what it brings is the newest, so a job that waits for another attempt goes as well.
local function verdict(mode, state, started, ttl)
  local waiting = is_waiting(state)
  if mode == 'waiting' then
    return waiting and 'duplicate'
  elseif mode == 'debounce' then
    return waiting and not (started and ttl) and 'replace'
  end
  local live = waiting or state == 'running'
  if mode == 'last' and live and (started or state == 'running') then
    return 'follow'
  end
  return live and 'duplicate'
end

local function enqueue_unique(intake, index, id, spec, facts)
  judge_all(intake)
  write_pile(intake)
  if facts.mode == 'throttle' then
    return throttled(intake, index, id, spec, facts)
  end
  local holder = call('GET', unique_key(facts.mode, facts.unique))
  local state = holder and state_of(holder)
  local mark = holder and marks_of({ holder })[holder]
  local finding = state and verdict(facts.mode, state, has_started(mark), facts.ttl)
  if finding == 'duplicate' then
    answer(intake, index, 'DUPLICATE', holder, state)
    count('duplicate', 1)
    return
  elseif finding == 'follow' then
    return follow(intake, index, id, spec, facts, holder)
  elseif finding == 'replace' then
    replace(intake, index, holder, state)
  end
  local delay = delay_of(intake, facts) or facts.mode == 'debounce' and tonumber(facts.ttl)
  hold_claim(intake, id, spec, facts, delay)
end
