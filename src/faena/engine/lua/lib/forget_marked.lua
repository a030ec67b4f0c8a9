--- Remove what only marked jobs own.
--@include key, unique, report
--@exports forget_marked
local function forget_marked(marks, leaving)
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
  report('cancelled', unheard, marks)
  call('HDEL', key('marks'), unpack(ids))
end
