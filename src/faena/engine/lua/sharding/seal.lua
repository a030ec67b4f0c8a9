--- All lanes that move for an epoch are known at this shard: none may be added any more.
-- states   none
-- keys     clock hash
--@args     epoch
-- returns  OK
--@flags allow-oom
--@arrivals
--@include keys, freeze_lane
if not is_sealed(epoch) then
  call('HSET', key('clock'), 'sealed', epoch)
end
return 'OK'
