--- Send jobs to another home: they leave their places here and lie in the outbox until it has them.
-- states   any but running -> gone
-- keys     all of a job · outbox, late, moves hashes
-- args     now · home · number of the last batch that has arrived there · epoch of the change (0 for
--          any) · id …
-- returns  number · packed jobs of the batch that must be taken there, 0 and '' for none · how many of
--          the ids were looked at (none while an earlier batch is under way)
-- refuses  STALE (the change is over)
-- Jobs that run, or wait for one that runs, are noted in `late`.
--@flags allow-oom
--@include now, conf, state, mark, place, forget, weigh, tally, moves, luggage, pass_claims
local MOST_BYTES = 4 * 1024 * 1024
local now, home, arrived, epoch = now_us(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local conf = conf_now()
if epoch > 0 and epoch ~= conf.epoch then
  return { 'STALE', '', 0 }
end

local under_way = call('HGET', key('outbox'), home)
local number, packed = string.match(under_way or '', '^(%d+) (.*)$')
if number and tonumber(number) > arrived then
  return { tonumber(number), packed, 0 }
elseif number then
  call('HDEL', key('outbox'), home)
end

local function is_leaving(lane)
  return string.match(call('HGET', key('moves'), lane) or '', '^out') ~= nil
end

--- Whether a job waits for another that is here, and will soon end or leave before it. One that stays
-- may wait for its next attempt for days.
local function follows(id, mark)
  local leader = mark.u and mark.m == 'last' and call('GET', unique_key(mark.m, mark.u))
  local state = leader and leader ~= id and state_of(leader)
  local lane = state and lane_in(call('HGET', key('specs'), leader))
  return state == 'running' or (lane and is_leaving(lane))
end

local function must_stay(id, state, spec)
  if state == 'running' then
    return true
  end
  local _, chain = lane_in(spec)
  return state == 'blocked' and not (chain and call('ZSCORE', key('tail:' .. chain), id))
    and follows(id, marks_of({ id })[id] or {})
end

--- A lane that is not noted had no live job when those that leave were: a finished one was run again.
local function may_leave(state, lane)
  if epoch > 0 and not is_finished(state) and call('HEXISTS', key('moves'), lane) == 0 then
    bar(lane, 'out ' .. whole(epoch))
  end
  return is_finished(state) or is_leaving(lane)
end

--- A follower of the same lane goes the same way; one of another would wait here for nobody.
local function leave_claim(id, lane, claim)
  call('DEL', key(claim))
  local mark = marks_of({ id })[id] or {}
  local follower = follower_of(mark)
  if follower and lane_in(call('HGET', key('specs'), follower)) ~= lane then
    pass_claims({ id }, { [id] = mark }, conf, now)
  end
end

local function take_out(job, lane)
  local id, state, claim = job[ID], job[STATE], job[CLAIM]
  if is_finished(state) and conf[state .. '_bytes'] then
    weigh_out(state, { id })
  end
  call('ZREM', key(state), id)
  if is_waiting(state) then
    leave_places({ id }, state)
  end
  if claim[1] then
    leave_claim(id, lane, claim[1])
  end
  forget({ id })
  call('HDEL', key('late'), id)
end

local jobs, ids, bytes, looked = {}, {}, 0, 0
for i = 5, #ARGV do
  local id, spec = ARGV[i], call('HGET', key('specs'), ARGV[i])
  local state, score = state_of(id)
  local lane = spec and lane_in(spec)
  bytes = bytes + #(spec or '')
  if bytes > MOST_BYTES and #jobs > 0 then
    break
  end
  looked = looked + 1
  if not state or not lane or not may_leave(state, lane) then
    call('HDEL', key('late'), id)   -- who waits for the late ones must not wait for this one
  elseif must_stay(id, state, spec) then
    call('HSET', key('late'), id, lane)
  else
    local job = pack_job(id, spec, state, score)
    jobs[#jobs + 1], ids[#ids + 1] = job, id
    take_out(job, lane)
  end
end
if #jobs == 0 then
  return { 0, '', looked }
end
-- Numbers grow, also over a home that was given up and is there again: its epoch is a later one.
number = math.max(tonumber(call('HGET', key('clock'), 'batches') or 0), (conf.epoch or 0) * EPOCH) + 1
packed = cmsgpack.pack(jobs)
call('HSET', key('clock'), 'batches', whole(number))
call('HSET', key('outbox'), home, whole(number) .. ' ' .. packed)
call('HINCRBY', key('clock'), 'removed', -#jobs)
call('HINCRBY', key('clock'), 'moved_out', #jobs)
tell('departed', ids)
flush_lanes()
flush_tally(now, conf.events_kept, '')
return { number, packed, looked }
