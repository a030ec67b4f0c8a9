--- A health check has ended.
-- states   none
-- keys     features, upstreams hashes · breaker strings · events stream
--@args     name, owner, is_good, message?, every_us, failures
--          is_good 1 or empty; failures is how many in a row are enough
-- returns  1 · 0, if another owner runs the check by then
--@flags allow-oom
--@include now, keys, safe_read, check_arguments, feature_states
local field, pause_us, enough = 'c:' .. name, instant_of(every_us, 'every_us'), size_of(failures, 'failures')
local packed = call('HGET', key('features'), field)
local record = packed and unpacked(packed) or {}
if record.o ~= owner then
  return 0
end
local number = is_good == '1' and 0 or number_in(record.n, 0) + 1
local is_failing = number > 0 and (number >= enough or record.x == 1)
local since = is_failing and record.x == 1 and number_in(record.a, now) or now
call('HSET', key('features'), field, cmsgpack.pack({
  n = number, x = is_failing and 1 or 0, m = message, a = since, d = now + pause_us,
}))
if is_failing ~= (record.x == 1) then
  touch_features()
end
return 1
