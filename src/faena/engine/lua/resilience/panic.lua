--- Put an upstream into panic, in which no call to it is permitted, or end its panic.
-- states   none
-- keys     upstreams hash · call string · events stream
--@args     caller, id_of_call, upstream, verb, by, reason?, duration_us?
--          verb is begin or end; duration_us '' until it is ended
-- returns  whether it was in panic before 1|0. One that is in panic gets the new reason, author and end
-- refuses  UNDECLARED
--@flags allow-oom
--@include now, check_arguments, replay, upstream_settings, upstream_panic
local duration = duration_us ~= '' and instant_of(duration_us, 'duration_us') or 0
if #read_upstreams({ { upstream } }, {}, {}) > 0 then
  return { 'UNDECLARED' }
end
local answered = replayed(caller, id_of_call)
if answered then
  return { tonumber(answered) }
end
local was = panic_of(upstream, now)
if verb == 'end' then
  if was then
    end_panic(upstream, was.reason, by)
  end
else
  local until_at = duration > 0 and now + duration or 0
  if not was or was.reason ~= reason or was.by ~= by or was.until_at ~= until_at then
    begin_panic(upstream, { until_at = until_at, reason = reason, by = by, at = was and was.at or now }, now)
  end
end
remember(caller, id_of_call, was and '1' or '0', 600)
return { was and 1 or 0 }
