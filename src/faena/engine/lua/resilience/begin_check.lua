--- Ask whether the health check of a feature is due; it is run by one process at a time.
-- states   none
-- keys     features hash
--@args     name, owner, lease_us
--          owner is new for each question; after its lease another owner may run the check
-- returns  0 if this owner is to run it now, else how long to wait before asking again
--@flags allow-oom
--@include now, keys, safe_read, check_arguments
local field, lasting_us = 'c:' .. name, instant_of(lease_us, 'lease_us')
local packed = call('HGET', key('features'), field)
local record = packed and unpacked(packed) or {}
local until_at, due_at = number_in(record.l, 0), number_in(record.d, 0)
if until_at > now and record.o == owner then
  return 0   -- the same question again
elseif until_at > now or due_at > now then
  return math.ceil(math.max(until_at, due_at) - now)
end
record.o, record.l = owner, now + lasting_us
call('HSET', key('features'), field, cmsgpack.pack(record))
return 0
