--- Give up a shard that no lane lives in any more.
-- states   none
-- keys     all
--@args     epoch
--          of the change that left it
-- returns  OK
-- refuses  STALE (it is needed again) · LIVE (a job is here all the same)
-- Its epoch stays for a day, with what schedules have fired here: a program that does not know yet that
-- it is gone must not be obeyed.
--@flags allow-oom
--@arrivals
--@include keys, delete_all_keys
local EPOCH_TTL_S = 86400
local conf = key('conf')
if call('HGET', conf, 'epoch') ~= epoch then
  return 'STALE'
elseif call('EXISTS', key('specs'), key('transfer_out'), key('recipients')) > 0 then
  return 'LIVE'
end
delete_all_keys()
-- a program that helped with the change and comes back late must not begin it again
local lines = 'epoch=' .. epoch .. '\nretired=' .. epoch
call('HSET', conf, 'epoch', epoch, 'retired', epoch)
call('HSET', key('clock'), 'digest', redis.sha1hex(lines))
call('EXPIRE', conf, EPOCH_TTL_S)
call('EXPIRE', key('clock'), EPOCH_TTL_S)
call('EXPIRE', key('fired'), EPOCH_TTL_S)
return 'OK'
