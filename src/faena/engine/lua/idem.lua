--- Idempotency records: make a handler safe to repeat.
-- states   none
-- keys     idem hash, with a TTL
-- args     hash · begin | complete | fail | clear · owner · ttl_ms · blob
-- returns  begin: {began} or {status, owner, blob} of the record there is; others: {OK} | {NOT_OWNER}
-- A `failed` record may be begun again; a `pending` one only by its owner (the same job, retried).
--@flags allow-oom
--@include key
local record, verb, owner, ttl, blob = key('idem:' .. ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local known = call('HMGET', record, 'status', 'owner', 'blob')
local status, holder = known[1], known[2]
if verb == 'begin' and (status == 'completed' or (status == 'pending' and holder ~= owner)) then
  return { status, holder, known[3] or '' }
end
if verb ~= 'begin' and status and holder ~= owner then
  return { 'NOT_OWNER' }
end
if verb == 'clear' then
  call('DEL', record)
  return { 'OK' }
end
local becomes = { begin = 'pending', complete = 'completed', fail = 'failed' }
call('HSET', record, 'status', becomes[verb], 'owner', owner, 'blob', blob)
call('PEXPIRE', record, ttl)
return { verb == 'begin' and 'began' or 'OK' }
