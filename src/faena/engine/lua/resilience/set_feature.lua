--- Set the state of a feature by hand, or end that.
-- states   none
-- keys     features, upstreams hashes · breaker, call strings · events stream
--@args     caller, id_of_call, name, state?, message?, duration_us?, by?
--          without a state, what was set is ended; without a duration it lasts until then
-- returns  1 · 0, if there was nothing to end
-- refuses  UNKNOWN · OVERTAKEN
--@flags allow-oom
--@include now, keys, replay, check_arguments, feature_states
local answered, overtaken = replayed(caller, id_of_call)
if answered then
  return tonumber(answered)
elseif overtaken then
  return 'OVERTAKEN'
elseif call('HEXISTS', key('features'), 'f:' .. name) == 0 then
  return 'UNKNOWN'
end
local ONCE_TTL_S = 600   -- longer than a caller sends it again
local field = 'm:' .. name
features_by(by)
if state == '' and call('HDEL', key('features'), field) == 0 then
  return 0
elseif state ~= '' then
  check(state == 'degraded' or state == 'offline', 'state')
  local until_at = duration_us ~= '' and now + instant_of(duration_us, 'duration_us') or 0
  call('HSET', key('features'), field, cmsgpack.pack({ s = state, m = message, b = by, a = now, u = until_at }))
end
if state == '' then
  tell_feature('feature_cleared', name)
else
  tell_feature('feature_set', name, 'to=' .. state .. (message ~= '' and ' message=' .. message or ''))
end
touch_features()
remember(caller, id_of_call, 1, ONCE_TTL_S)
return 1
