--- Run finished jobs again, with fresh attempts and at their own priority.
-- states   rerun     completed | dead | cancelled -> ready | blocked : the same job runs again
-- keys     dead, cancelled, completed, ready zsets · results, marks, desk hashes
--@args     caller, id_of_call, by?, ended_to?, id...
--          caller of this call only; ended_to: only those that ended then or before
-- returns  for each: ready (also when it was before) | blocked (in its chain) | the state that forbids
--          it | resolved, discarded or `retried <new id>` (decided at the dead-letter desk) | later (it ended after
--          ended_to) | unknown
-- refuses  UNCONFIGURED
--@arrivals
--@include now, job_state, score, job_metadata, wake_worker, event_and_stats, waiting, dead_index, spec_line, keys
--@include lane, run_once, retention
local conf, answer = begin_once(caller, id_of_call)
if not conf then
  return answer
end
context.by = by
local answers, rerun, last_at = {}, {}, tonumber(ended_to) or math.huge

--- What stays with a job: errors and log, changed priority, where it comes from, whom it tells.
local KEPT = { 'i', 'p', 'o', 'b', 'x', 'w', 't' }

--- The decision about a dead job, or nil: a rerun must not undo it.
local function decided(id)
  local record = records_of({ id })[id]
  if not record or record.s == 'pending' then
    return nil
  end
  return record.s == 'retried' and 'retried ' .. record.to or record.s
end

--- Attempts, losses and claims are new.
local function renew_mark(id, mark)
  local kept = {}
  for _, name in ipairs(KEPT) do
    kept[name] = mark and mark[name]
  end
  if next(kept) then
    save_mark(id, kept)
  elseif mark then
    call('HDEL', key('marks'), id)
  end
end

local function start_over(id, state)
  local mark, spec = marks_of({ id })[id], call('HGET', key('specs'), id)
  leave_state(state, { id }, conf)
  call('HDEL', key('results'), id)
  renew_mark(id, mark)
  local lane, chain = lane_in(spec)
  if lane then
    count_lane(lane, 1, 0)
  end
  local score = chain and fresh_stamp(now) or score_of(conf, now, priority_of(spec, mark), 0)
  start_waiting({ { id = id, score = score, lane = lane, chain = chain } })
end

for i = first_id, #ARGV do
  local id = ARGV[i]
  local state, at = state_of(id)
  local forbids = state == 'dead' and decided(id) or is_finished(state) and tonumber(at) > last_at and 'later'
  if is_finished(state) and not forbids then
    start_over(id, state)
    rerun[#rerun + 1] = id
    state = state_of(id)
  end
  answers[#answers + 1] = forbids or state or 'unknown'
end
if #rerun > 0 then
  wake_worker()
  end_once(caller, id_of_call, answers)
end
record_event('rerun', rerun)
return answers
