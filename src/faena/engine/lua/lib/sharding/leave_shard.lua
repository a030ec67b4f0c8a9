--- A job that goes to another shard leaves its place.
--@include keys, job_state, job_metadata, spec_line, waiting, unique_claim, delete_jobs, freeze_lane, job_snapshot
--@include dead_snapshot, pass_unique_claims, tenant_override, retention
--@exports may_leave, must_stay, send
local function is_leaving(lane)
  return string.match(call('HGET', key('moves'), lane) or '', '^out') ~= nil
end

--- A lane that is not noted had no live job when those that leave were: a finished one was run again.
local function may_leave(state, lane, epoch)
  if epoch > 0 and not is_finished(state) and call('HEXISTS', key('moves'), lane) == 0 then
    freeze_lane(lane, 'out ' .. whole(epoch))
  end
  return is_finished(state) or is_leaving(lane)
end

--- Whether a job waits for another that is here, and will soon end or leave with it. One that stays
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

local function take_out(job, conf)
  local id, state, claim = job[ID], job[STATE], job[CLAIM]
  leave_state(state, { id }, conf)
  if is_waiting(state) then
    leave_waiting({ id }, state)
  end
  if claim[1] then
    call('DEL', key(claim[1]))
  end
  delete_jobs({ id }, true)
  call('HDEL', key('late'), id)
end

--- Until when a provider has had a lane held. A job that ran while its lane left may have been told
-- so, and what was decided for the lane had gone before.
local function held_by_provider(lane, now)
  local control = controls_of({ lane }, now)[lane] or {}
  return control.reason == 'rate_limited' and control.held_until or nil
end

--- Put a job into the batch. Its follower would wait here in vain: it goes with it, or is free
-- where its lane is another.
local function send(batch, id, spec, state, score, conf, now)
  local mark, job = marks_of({ id })[id] or {}, pack_job(id, spec, state, score)
  batch[#batch + 1], job[HELD] = job, held_by_provider(lane_in(spec), now)
  if state == 'dead' then
    job[HELD], job[DESK] = job[HELD] or false, dead_snapshot(id)
  end
  take_out(job, conf)
  local follower, at = nil, nil
  if job[CLAIM][1] then
    follower, at = follower_of(mark)
  end
  local its = follower and call('HGET', key('specs'), follower)
  if its and lane_in(its) == lane_in(spec) then
    send(batch, follower, its, 'blocked', whole(at), conf, now)
  elseif its then
    pass_unique_claims({ id }, { [id] = mark }, conf, now)
  end
end
