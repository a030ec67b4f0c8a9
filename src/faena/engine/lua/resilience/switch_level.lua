--- Switch a level on or off.
-- states   none
-- keys     features, upstreams hashes · breaker, call strings · events stream
--@args     caller, id_of_call, name, to, message?, duration_us?, by?
--          to is on or off; without a duration it lasts until it is switched off
-- returns  1 · 0, if it was off
-- refuses  UNKNOWN · OVERTAKEN
--@flags allow-oom
--@include now, keys, replay, check_arguments, feature_states
check(to == 'on' or to == 'off', 'to')
local answered, overtaken = replayed(caller, id_of_call)
if answered then
  return tonumber(answered)
elseif overtaken then
  return 'OVERTAKEN'
elseif call('HEXISTS', key('features'), 'l:' .. name) == 0 then
  return 'UNKNOWN'
end
local ONCE_TTL_S = 600   -- longer than a caller sends it again
local field = 'o:' .. name
features_by(by)
if to == 'on' then
  local until_at = duration_us ~= '' and now + instant_of(duration_us, 'duration_us') or 0
  call('HSET', key('features'), field, cmsgpack.pack({ m = message, b = by, a = now, u = until_at }))
elseif call('HDEL', key('features'), field) == 0 then
  return 0
end
tell_feature('level_' .. to, name, message ~= '' and 'message=' .. message or nil)
touch_features()
remember(caller, id_of_call, 1, ONCE_TTL_S)
return 1
