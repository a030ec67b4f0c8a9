--- A job that comes from another shard takes its place.
--@include keys, job_state, job_metadata, spec_line, lane, waiting, unique_claim, delete_jobs, pass_unique_claims
--@include event_and_stats, job_snapshot, expires_from, history_record
--@exports enter_waiting, unpack_job
--- The job that has a chain's turn, unless it may not be taken away because the job has started.
local function head_of(chain)
  local head = call('HGET', key('heads'), chain)
  local score = head and call('ZSCORE', key('ready'), head)
  return head, tonumber(score)
end

--- A ready job gives its turn to one that came before it.
local function step_back(chain, head, score)
  call('ZREM', key('ready'), head)
  local lane = lane_in(call('HGET', key('specs'), head))
  if lane then
    leave_lane(head, lane)
  end
  call('ZADD', key('tail:' .. chain), score, head)
  call('ZADD', key('blocked'), score, head)
end

--- Whether a job that comes takes the turn of its chain. One that waits for its next attempt keeps
-- the turn it had; of ready ones each had it for a moment while they left.
local function takes_turn(job, chain)
  local head, score = head_of(chain)
  if not head then
    return true
  elseif score and (job[STATE] == 'delayed' or tonumber(job[SCORE]) < score) then
    step_back(chain, head, score)
    return true
  end
  return false
end

local function enter_chain(job, item)
  if takes_turn(job, item.chain) then
    call('HSET', key('heads'), item.chain, item.id)
    write_ready({ item })
  else
    call('ZADD', key('tail:' .. item.chain), item.score, item.id)
    call('ZADD', key('blocked'), item.score, item.id)
  end
end

--- A newer job waits behind the same one: it has taken this one's place.
local function give_way(item, conf, now)
  if item.lane then
    count_lane(item.lane, -1, 0)
  end
  record_history('replaced', { item.id }, marks_of({ item.id }), conf, now)
  delete_jobs({ item.id })
  record_event('replaced', { item.id })
end

--- A follower waits on behind the job that has the claim now; it has the claim when no job has.
local function enter_blocked(job, conf, now, item)
  local mark = job[MARK] ~= '' and cmsgpack.unpack(job[MARK]) or {}
  local claim = mark.u and unique_key(mark.m, mark.u)
  local leader = claim and call('GET', claim)
  if not (leader and state_of(leader)) then
    if claim then
      call('SET', claim, item.id)
    end
    return free_follower(item.id, tonumber(item.score), conf, now)
  end
  local its = marks_of({ leader })[leader] or { u = mark.u, m = mark.m }
  if follower_of(its) then
    return give_way(item, conf, now)
  elseif its.n ~= item.id then
    its.n = item.id
    save_mark(leader, its)
  end
  call('ZADD', key('blocked'), item.score, item.id)
end

local function enter_waiting(job, conf, now, item)
  local expires = read_mark(job[MARK]).e
  if expires then
    note_expiry(expires)
  end
  if item.lane then
    count_lane(item.lane, 1, 0)
  end
  if job[STATE] == 'delayed' then
    call('ZADD', key('delayed'), item.score, item.id)
    if job[TURN] == 'head' and takes_turn(job, item.chain) then
      call('HSET', key('heads'), item.chain, item.id)
    end
  elseif job[STATE] == 'blocked' and job[TURN] == '' then
    enter_blocked(job, conf, now, item)
  elseif item.chain then
    enter_chain(job, item)
  else
    write_ready({ item })
  end
end

local function unpack_job(job)
  local id, info, claim = job[ID], job[INFO], job[CLAIM]
  call('HSET', key('specs'), id, job[SPEC])
  if job[MARK] ~= '' then
    call('HSET', key('marks'), id, job[MARK])
    context.is_any_marked = true
  end
  if #info > 0 then
    call('HSET', key('info:' .. id), unpack(info))
  end
  if job[RESULT] ~= '' then
    call('HSET', key('results'), id, job[RESULT])
  end
  if claim[1] and claim[3] > 0 then
    call('SET', key(claim[1]), claim[2], 'NX', 'PX', claim[3])
  elseif claim[1] then
    call('SET', key(claim[1]), claim[2], 'NX')
  end
end
