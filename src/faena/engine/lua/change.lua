--- Change the delay or the priority of a waiting job.
-- states   ready | delayed -> delayed (a delay) · ready (no delay) · stays (priority only)
-- keys     ready, delayed zsets · marks hash · wake zset
-- args     now · caller (of this call only) · call · id · delay_us ('' keeps) · priority ('' keeps)
-- returns  the state the job is in afterwards
-- refuses  UNCONFIGURED · unknown · running … (a state that does not wait)
--@flags allow-oom
--@include now, conf, replay, state, score, mark, wake, tally
local now, id, delay, priority = now_us(ARGV[1]), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local conf = conf_now()
local answered = replayed(ARGV[2], ARGV[3])
if answered then
  return answered
elseif not conf.version then
  return 'UNCONFIGURED'
end
local state, place = state_of(id)
if state ~= 'ready' and state ~= 'delayed' then
  return state or 'unknown'
end

local mark, spec = marks_of({ id })[id] or {}, call('HGET', key('specs'), id)
local attempts, before = mark.a or 0, priority_of(spec, mark)
if priority then
  mark.p = priority
  save_mark(id, mark)
end
local after = priority or before
if delay and delay > 0 then
  call('ZREM', key('ready'), id)
  call('ZADD', key('delayed'), now + delay, id)
  state = 'delayed'
elseif delay and state == 'delayed' then
  call('ZREM', key('delayed'), id)
  call('ZADD', key('ready'), score_of(conf, now, after, attempts), id)
  state = 'ready'
elseif state == 'ready' then
  call('ZADD', key('ready'), place + (after - before) * conf.age_step_us, id)
end
arm_wake()
tell('changed', { id })
remember(ARGV[2], ARGV[3], state, ONCE_TTL_S)
flush_tally(now, conf.events_kept, '')
return state
