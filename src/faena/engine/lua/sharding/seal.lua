--- All lanes that move for an epoch are known at this shard: none may be added any more.
-- states   none
-- keys     clock hash
-- args     now · epoch
-- returns  OK
--@flags allow-oom
--@arrivals
--@include key, moves
if not is_sealed(ARGV[2]) then
  call('HSET', key('clock'), 'sealed', ARGV[2])
end
return 'OK'
