--- Count a failed try to sign in; too many within a while are refused.
-- states   none
-- keys     tries strings
--@args     name, lasting_ms
--          whose: a user's, or an address'
-- returns  how many there were within `lasting_ms` of the first one
--@flags allow-oom
--@include keys, check_arguments, safe_read
local tries, lasting = key('tries:' .. name), instant_of(lasting_ms, 'lasting_ms')
local number = math.max(0, math.min(count_in(call('GET', tries), 0), 1000000)) + 1
local left = call('PTTL', tries)
call('SET', tries, number, 'PX', left > 0 and left or lasting)
return number
