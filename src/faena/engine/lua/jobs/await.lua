--- Ask to be told when a job is finished; one that is finished already is answered at once.
-- states   none
-- keys     waiters hash · the zsets
--@args     id
-- returns  the state (the caller looks when it is a finished one) or unknown
--@flags allow-oom
--@arrivals
--@include job_state, keys
local state = state_of(id)
if is_waiting(state) or state == 'running' then
  call('HSET', key('waiters'), id, 1)
end
return state or 'unknown'
