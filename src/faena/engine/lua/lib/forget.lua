--- Remove jobs with whatever they own: spec, result, mark, info, unique claim, waiters' entry.
-- The set of their state is the caller's to clear. Those that are `leaving` live on in another shard.
--@include read, key, mark, waiter, forget_marked
--@exports forget
local function forget(ids, leaving)
  if #ids == 0 then
    return
  end
  local marks = marks_of(ids)
  if next(marks) then
    forget_marked(marks, leaving)
  end
  if call('EXISTS', key('waiters'), key('results')) > 0 then
    tell_waiters(ids)
    call('HDEL', key('results'), unpack(ids))
  end
  call('HDEL', key('specs'), unpack(ids))
  bump(key('clock'), 'removed', #ids)
end
