--- Notify the waiters of a job on the `done` channel when it is finished or removed.
--@include keys
--@exports notify_waiters
local function notify_waiters(ids)
  if call('EXISTS', key('waiters')) == 0 then
    return
  end
  local waiting = call('HMGET', key('waiters'), unpack(ids))
  for i = 1, #ids do
    if waiting[i] then
      call('HDEL', key('waiters'), ids[i])
      publish('done', ids[i])
    end
  end
end
