--- Retry dead jobs as new ones that are linked to them.
-- states   retry_as_new  none -> ready | blocked : a new job made of a dead one, which stays dead
-- keys     desk, specs, marks hashes · desk: zsets · ready zset
--@args     caller, id_of_call, epoch?, action, reason, by, priority, id fresh...
--          caller of this call only; epoch of the shards, '' for the first; priority at most
-- returns  for each: OK | retried, discarded or resolved (no longer pending) | the state of a job that
--          is not dead | unknown | taken (the new id)
-- refuses  UNCONFIGURED · MOVED (the shards are of another epoch)
--@arrivals
--@include now, event_and_stats, retry_dead_as_new, dead_index, run_once
local conf, answer = begin_once(caller, id_of_call, epoch)
if not conf then
  return answer
end
local why = { action = action, reason = reason, by = by, priority = tonumber(priority) }
local ids, fresh = {}, {}
context.by = why.by
for i = first_id, #ARGV, 2 do
  ids[#ids + 1], fresh[#fresh + 1] = ARGV[i], ARGV[i + 1]
end
local answers = retry_dead_as_new(ids, fresh, records_of(ids), why, conf, now)
return end_once(caller, id_of_call, answers)
