--- Remove jobs with whatever they own: spec, result, mark, info, unique claim, waiters' entry.
-- The set of their state is the caller's to clear.
--@include key, mark, unique, waiter
local function forget(ids)
  if #ids == 0 then
    return
  end
  local infos, marked = {}, {}
  for id, mark in pairs(marks_of(ids)) do
    marked[#marked + 1] = id
    if mark.i then
      infos[#infos + 1] = key('info:' .. id)
    end
    if mark.u then
      release_unique(id, mark)
    end
  end
  if #infos > 0 then
    call('UNLINK', unpack(infos))
  end
  tell_waiters(ids)
  call('HDEL', key('specs'), unpack(ids))
  if #marked > 0 then
    call('HDEL', key('marks'), unpack(marked))
  end
  if call('EXISTS', key('results')) == 1 then
    call('HDEL', key('results'), unpack(ids))
  end
  call('HINCRBY', key('clock'), 'removed', #ids)
end
