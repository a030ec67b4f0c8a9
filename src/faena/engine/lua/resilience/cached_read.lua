--- A value that was read from a source: look at it, and take, keep or give back the right to read it anew.
-- states   none
-- keys     cached hash, with a TTL
--@args     verb, token, fresh_us?, lease_us?, keep_us?, blob?
--          verb look | store | fail. The token is a reader's; only the one that was given the lease may end it, and the
--          lease ends by itself after lease_us. A value counts from the instant its reader was given the lease. After a
--          failure, which blob describes, no reader is given the lease for keep_us
-- returns  look: {fresh | lease | busy | failed, value or '', age in µs or -1, what failed}; others: {OK | LOST}
--@flags allow-oom
--@include keys, now, safe_read
local record, now = key('cached'), now_us()
local value, at, holder, until_at, leased_at, paused_until, failure =
  unpack(call('HMGET', record, 'value', 'at', 'token', 'until_at', 'leased_at', 'paused_until', 'failure'))
local keep_ms = math.ceil(math.max(0, math.min(number_in(keep_us, 0), 2 ^ 50)) / 1000)
if verb ~= 'look' then
  if holder ~= token or token == '' then
    return { 'LOST' }
  end
  call('HDEL', record, 'token', 'until_at', 'leased_at', 'paused_until', 'failure')
  if verb == 'store' then
    call('HSET', record, 'value', blob, 'at', number_in(leased_at, now))
    call('PEXPIRE', record, keep_ms + 1)
  else
    call('HSET', record, 'paused_until', now + keep_ms * 1000, 'failure', blob)
    call('PEXPIRE', record, math.max(call('PTTL', record), keep_ms + 1))
  end
  return { 'OK' }
end
local age = value and math.max(0, now - number_in(at, 0)) or -1
local function answer(status)
  return { status, value or '', whole(age), status == 'failed' and failure or '' }
end
if value and age < number_in(fresh_us, 0) then
  return answer('fresh')
elseif holder and holder ~= token and number_in(until_at, 0) > now then
  return answer('busy')
elseif number_in(paused_until, 0) > now then
  return answer('failed')
end
local lease_us = math.max(1000, math.min(number_in(lease_us, 0), 2 ^ 50))
call('HSET', record, 'token', token, 'until_at', now + lease_us, 'leased_at', now)
call('PEXPIRE', record, math.max(call('PTTL', record), math.ceil(lease_us / 1000) + 1))
return answer('lease')
