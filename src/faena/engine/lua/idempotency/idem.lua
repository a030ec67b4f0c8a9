--- Idempotency records: make a handler safe to repeat.
-- states   none
-- keys     idem hash, with a TTL
--@args     hash, verb, owner, ttl_ms, blob, token?
--          verb begin | extend | complete | fail | clear
-- returns  begin: {began} or {status, owner, blob} of the record there is; others: {OK} | {NOT_OWNER}
-- A `failed` record may be begun again; a `pending` one only by its owner (the same job, run again).
-- The token is that of the last attempt to begin: an attempt that was followed by another of its owner can
-- neither extend nor fail, but what it completes is done. The first result stands.
--@flags allow-oom
--@include keys
local record = key('idem:' .. hash)
local known = call('HMGET', record, 'status', 'owner', 'blob', 'token')
local status, holder = known[1], known[2]
if verb == 'begin' and (status == 'completed' or (status == 'pending' and holder ~= owner)) then
  return { status, holder, known[3] or '' }
end
if verb ~= 'begin' and status and holder ~= owner then
  return { 'NOT_OWNER' }
end
if (verb == 'extend' or verb == 'fail') and token ~= '' and (known[4] ~= token or status == 'completed') then
  return { 'NOT_OWNER' }
end
if verb == 'extend' then
  call('PEXPIRE', record, ttl_ms)
  return { 'OK' }
elseif verb == 'clear' then
  call('DEL', record)
  return { 'OK' }
elseif verb == 'complete' and status == 'completed' then
  return { 'OK' }
end
local becomes = { begin = 'pending', complete = 'completed', fail = 'failed' }
call('HSET', record, 'status', becomes[verb], 'owner', owner, 'blob', blob, 'token', token)
call('PEXPIRE', record, ttl_ms)
return { verb == 'begin' and 'began' or 'OK' }
