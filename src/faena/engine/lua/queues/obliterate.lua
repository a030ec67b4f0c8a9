--- Remove a queue with everything it owns, a slice at a call.
-- states   remove    ready | delayed | blocked | completed | dead | cancelled -> none : the whole queue is deleted
--          remove    running -> none : the same, by force
--          unblock   blocked -> ready : what it waited for is over
-- keys     all
--@args     slice, force?, drop?
--          force 1: also while jobs run; drop 1: messages to others too
-- returns  DONE, MORE, MAIL (messages wait to be carried), or the refusal
-- refuses  RUNNING
--@flags allow-oom
--@arrivals
--@include now, job_state, delete_jobs, waiting, delete_all_keys, dead_index, keys, queue_settings, history_record
--@include job_metadata
local slice = tonumber(slice)
if force ~= '1' and call('ZCARD', key('running')) > 0 then
  return 'RUNNING'
end
for _, state in ipairs(STATES) do
  local ids = call('ZRANGE', key(state), 0, slice - 1)
  if #ids > 0 then
    call('ZREM', key(state), unpack(ids))
    if not is_finished(state) then
      record_history('removed', ids, marks_of(ids), conf_now(), now)
    end
    if is_waiting(state) then
      leave_waiting(ids, state)
    elseif state == 'dead' then
      remove_from_index(ids)
    end
    call('HDEL', key('leases'), unpack(ids))
    delete_jobs(ids)
    return 'MORE'
  end
end
if drop ~= '1' and call('SCARD', key('recipients')) > 0 then
  return 'MAIL'   -- flows elsewhere must hear that their jobs are gone
end
for set, family in pairs({ flows = 'flow:', flows_done = 'flow:', groups = 'group:', groups_done = 'group:' }) do
  local names = call('ZRANGE', key(set), 0, slice - 1)
  for _, name in ipairs(names) do
    call('UNLINK', key(family .. name))
    call('ZREM', key(set), name)
  end
  if #names > 0 then
    return 'MORE'
  end
end
-- Shards that were retired remember their epochs for a day: those of a queue of this name go on.
local epoch = call('HGET', key('shards'), 'epoch')
delete_all_keys()
call('UNLINK', key('fired'))
if epoch then
  call('HSET', key('shards'), 'epoch', epoch)
  call('EXPIRE', key('shards'), 86400)
end
return 'DONE'
