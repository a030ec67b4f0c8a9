--- Remove jobs of one state in a slice: finished ones older than an age, or waiting ones (drain).
-- states   remove    ready | delayed | blocked | completed | dead | cancelled -> none : an operator cleans by state and age
--          unblock   blocked -> ready : what it waited for is over
-- keys     the state's zset · specs, results, marks hashes · info hashes
--@args     state, age_us, slice, by?
-- returns  how many were removed (less than `slice` when none are left)
-- refuses  FORBIDDEN (a state that cannot be cleaned: running jobs have owners)
--@flags allow-oom
--@arrivals
--@include now, queue_settings, job_state, event_and_stats, job_metadata, pass_unique_claims, retention, waiting, keys
--@include history_record
local age, slice = tonumber(age_us), tonumber(slice)
local conf, ids = conf_now(), nil
if not conf.version then
  return 0   -- no queue, no jobs
end
if is_waiting(state) then
  ids = call('ZRANGE', key(state), 0, slice - 1)
  if #ids > 0 then
    call('ZREM', key(state), unpack(ids))   -- first, or one would be freed as another's follower
    leave_waiting(ids, state)
    record_history('removed', ids, marks_of(ids), conf, now)
    pass_unique_claims(ids, marks_of(ids), conf, now)
  end
elseif is_finished(state) then
  ids = call('ZRANGE', key(state), '-inf', now - age, 'BYSCORE', 'LIMIT', 0, slice)
else
  return 'FORBIDDEN'
end
context.by = by
if #ids > 0 then
  drop(state, ids, conf)
  count('cleaned', #ids)
  record_action('cleaned', state .. ':' .. #ids)
end
return #ids
