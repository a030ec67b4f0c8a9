--- Begin a silence: no notices of some alerts, for some time; or end one.
-- states   none
-- keys     alert_silences hash · call string · events stream
--@args     caller, id_of_call, verb, id, rule?, subject?, duration_us?, by, reason?
--          begin or end · of the silence · which alerts, all if empty
-- returns  1 · 0, if there is none to end
-- refuses  FULL · OVERTAKEN
--@flags allow-oom
--@include now, keys, replay, check_arguments, alert_notices
local MOST, ONCE_TTL_S = 1000, 600
local answered, overtaken = replayed(caller, id_of_call)
if answered then
  return tonumber(answered)
elseif overtaken then
  return 'OVERTAKEN'
end
check(verb == 'begin' or verb == 'end', 'verb')
local known = call('HGET', key('alert_silences'), id)
local one
if verb == 'begin' then
  if call('HLEN', key('alert_silences')) >= MOST then
    return 'FULL'
  end
  one = { r = rule, s = subject, u = now + instant_of(duration_us, 'duration_us'), a = now, b = by, y = reason }
  call('HSET', key('alert_silences'), id, cmsgpack.pack(one))
  tell_silence('alert_silenced', one, by)
elseif known then
  one = silence_in(known)
  call('HDEL', key('alert_silences'), id)
  if one.u > now then
    tell_silence('alert_unsilenced', one, by)
  end
end
local answer = one and one.u > now and 1 or 0
remember(caller, id_of_call, answer, ONCE_TTL_S)
return answer
