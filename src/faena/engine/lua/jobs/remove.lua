--- Remove jobs that wait or are finished, unless a flow or a group waits for their end.
-- states   remove    ready | delayed | blocked | completed | dead | cancelled -> none : an operator removes it
--          unblock   blocked -> ready : what it waited for is over
-- keys     all zsets but running · specs, results, marks hashes · info hashes
--@args     caller, id_of_call, by?, id...
--          caller of this call only
-- returns  for each: removed | running | member (of a flow or a group that waits for its end) | unknown
-- refuses  UNCONFIGURED
--@flags allow-oom
--@arrivals
--@include now, job_state, event_and_stats, job_metadata, pass_unique_claims, retention, waiting, keys, run_once
--@include history_record
local conf, answer = begin_once(caller, id_of_call)
if not conf then
  return answer
end

local function refusal(state, mark)
  if not state then
    return 'unknown'
  elseif state == 'running' then
    return 'running'
  end
  local is_member = mark and string.find(mark.w or '', '^[fg]:')   -- an outbox is told, and does not wait
  return is_waiting(state) and is_member and 'member' or nil
end

context.by = by
local asked, answers, by_state, removed, seen = {}, {}, {}, {}, {}
for i = first_id, #ARGV do
  asked[#asked + 1] = ARGV[i]
end
local marks = marks_of(asked)
for i, id in ipairs(asked) do
  local state = state_of(id)
  answers[i] = refusal(state, marks[id]) or 'removed'
  if answers[i] == 'removed' and not seen[id] then
    seen[id] = true
    removed[#removed + 1] = id
    by_state[state] = by_state[state] or {}
    table.insert(by_state[state], id)
  end
end
for state, ids in pairs(by_state) do
  if is_waiting(state) then
    call('ZREM', key(state), unpack(ids))   -- first, or one would be freed as another's follower
  end
end
for state, ids in pairs(by_state) do
  if is_waiting(state) then
    leave_waiting(ids, state)
    record_history('removed', ids, marks, conf, now)
    pass_unique_claims(ids, marks_of(ids), conf, now)
  end
  drop(state, ids, conf)
end
if #removed > 0 then
  record_event('removed', removed)
  end_once(caller, id_of_call, answers)
end
return answers
