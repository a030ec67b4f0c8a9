--- Change the delay or the priority of a waiting job.
-- states   delay     ready -> delayed : it got a delay
--          promote   delayed -> ready | blocked : its delay was taken away
--          unblock   blocked -> ready : what it waited for is over
-- keys     ready, delayed zsets · marks hash · wake zset
--@args     caller, id_of_call, id, delay_us?, priority?, by?
--          caller of this call only; '' keeps the delay or the priority
-- returns  the state the job is in afterwards
-- refuses  UNCONFIGURED · unknown · running … (a state that does not wait)
--@flags allow-oom
--@arrivals
--@include now, job_state, score, job_metadata, wake_worker, event_and_stats, waiting, enqueued_at, spec_line, keys
--@include lane, run_once
local delay, priority = tonumber(delay_us), tonumber(priority)
local conf, answer = begin_once(caller, id_of_call)
if not conf then
  return answer
end
local state, stands_at = state_of(id)
if state ~= 'ready' and state ~= 'delayed' then
  return state or 'unknown'
end

local mark, spec = marks_of({ id })[id] or {}, call('HGET', key('specs'), id)
local attempts, before = mark.a or 0, priority_of(spec, mark)
local lane, chain = lane_in(spec)
local name = aside_now() > 0 and key_in(spec) or nil
local item = { id = id, lane = lane, chain = chain }
if delay and delay > 0 and state == 'ready' then
  mark.q = enqueued_at(spec, mark, stands_at, conf)
end
if priority then
  mark.p = priority
end
local was_put_off = delay and (mark.y or mark.r)
if was_put_off then   -- by a worker or by its handler: this call replaces their delay
  mark.y, mark.r = nil, nil
end
if priority or mark.q or was_put_off then
  save_mark(id, mark)
end
local after = priority or before
if delay and delay > 0 then
  if call('ZREM', key('ready'), id) == 1 then
    if lane then
      leave_lane(id, lane, name)
    end
    yield_turns({ item })
  end
  call('ZADD', key('delayed'), now + delay, id)
  state = 'delayed'
elseif delay and state == 'delayed' then
  call('ZREM', key('delayed'), id)
  item.score = chain and (tonumber(mark.s) or fresh_stamp(now)) or score_of(conf, now, after, attempts)
  start_waiting({ item })
  state = state_of(id)
elseif state == 'ready' and not chain then
  local score = stands_at + (after - before) * conf.age_step_us
  call('ZADD', key('ready'), score, id)
  if name and call('ZSCORE', key('aside:' .. name), id) then
    call('ZADD', key('aside:' .. name), score, id)
    call('ZADD', key('aside'), now, name)   -- it may go before those that went back
  elseif lane then
    call('ZADD', key('lane:' .. lane), score, id)
  end
end
wake_worker()
context.by = by
record_event('changed', { id })
return end_once(caller, id_of_call, state)
