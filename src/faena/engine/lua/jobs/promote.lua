--- Run delayed jobs now.
-- states   promote   delayed -> ready | blocked : a caller promotes it before its delay ends
-- keys     delayed, ready zsets · wake zset
--@args     caller, id_of_call, by?, id...
--          caller of this call only
-- returns  for each: promoted | the state it is in | unknown
-- refuses  UNCONFIGURED
--@flags allow-oom
--@arrivals
--@include now, job_state, event_and_stats, promote_delayed, wake_worker, run_once
local conf, answer = begin_once(caller, id_of_call)
if not conf then
  return answer
end
context.by = by
local answers, promoted, instants = {}, {}, {}
for i = first_id, #ARGV do
  local state = state_of(ARGV[i])
  if state == 'delayed' then
    promoted[#promoted + 1] = ARGV[i]
    instants[#instants + 1] = now
    state = 'promoted'
  end
  answers[#answers + 1] = state or 'unknown'
end
if #promoted > 0 then
  make_ready(promoted, instants, conf)
  wake_worker()
  record_event('promoted', promoted)
  end_once(caller, id_of_call, answers)
end
return answers
