--- Remove jobs with whatever they own: spec, result, mark, info, unique claim, waiters' entry.
-- The set of their state is the caller's to clear. Those that are `leaving` live on in another shard.
--@include safe_read, keys, job_metadata, notify_waiters, unique_claim, report_job_end
--@exports delete_jobs

--- What only marked jobs own.
local function delete_marked(marks, leaving)
  local ids, infos, unheard = {}, {}, {}
  for id, mark in pairs(marks) do
    ids[#ids + 1] = id
    if mark.w and not mark.t and not leaving then
      unheard[#unheard + 1] = id   -- it is removed before its end
    end
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
  report_job_end('cancelled', unheard, marks)
  call('HDEL', key('marks'), unpack(ids))
end

local function delete_jobs(ids, leaving)
  if #ids == 0 then
    return
  end
  local marks = marks_of(ids)
  if next(marks) then
    delete_marked(marks, leaving)
  end
  if call('EXISTS', key('waiters'), key('results')) > 0 then
    notify_waiters(ids)
    call('HDEL', key('results'), unpack(ids))
  end
  call('HDEL', key('specs'), unpack(ids))
  bump(key('clock'), 'removed', #ids)
end
