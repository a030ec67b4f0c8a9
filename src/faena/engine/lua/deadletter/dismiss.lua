--- Deal with dead jobs otherwise than by a retry: they stay until retention ends.
-- states   none
-- keys     desk hash · desk: zsets
--@args     caller, id_of_call, status, action, reason, by, id...
--          caller of this call only; status discarded|resolved
-- returns  for each: OK | the status that forbids it | the state of a job that is not dead | unknown
-- refuses  UNCONFIGURED
--@flags allow-oom
--@include now, job_state, event_and_stats, dead_index, run_once, history_record, job_metadata
local conf, answer = begin_once(caller, id_of_call)
if not conf then
  return answer
end
local answers, done, ids = {}, {}, { unpack(ARGV, first_id) }
local records = records_of(ids)
for _, id in ipairs(ids) do
  local record = records[id]
  if not record then
    answers[#answers + 1] = state_of(id) or 'unknown'
  elseif record.s ~= 'pending' then
    answers[#answers + 1] = record.s
  else
    record.s, record.r = status, { action, reason, by, now }
    done[#done + 1], answers[#answers + 1] = id, 'OK'
  end
end
close_records(done, records, status)
record_history(status, done, marks_of(done), conf, now)
context.by = by
record_event('dead_' .. status, done)
return end_once(caller, id_of_call, answers)
