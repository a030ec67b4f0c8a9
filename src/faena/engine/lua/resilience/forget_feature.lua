--- Forget a feature or a level: what code has declared of it, its state, and what was set by hand.
-- states   none
-- keys     features, upstreams hashes · breaker, call strings · events stream
--@args     caller, id_of_call, kind, name, by
--          kind is feature or level
-- returns  1
-- refuses  UNKNOWN · OVERTAKEN
--@flags allow-oom
--@include keys, replay, check_arguments, feature_states
check(kind == 'feature' or kind == 'level', 'kind')
local answered, overtaken = replayed(caller, id_of_call)
if answered then
  return tonumber(answered)
elseif overtaken then
  return 'OVERTAKEN'
end
local ONCE_TTL_S = 600   -- longer than a caller sends it again
local fields = kind == 'feature' and { 'f:', 'm:', 'c:', 's:' } or { 'l:', 'o:' }
for i, letter in ipairs(fields) do
  fields[i] = letter .. name
end
if call('HEXISTS', key('features'), fields[1]) == 0 then
  return 'UNKNOWN'
end
call('HDEL', key('features'), unpack(fields))
features_by(by)
tell_feature(kind .. '_forgotten', name)
touch_features()
remember(caller, id_of_call, 1, ONCE_TTL_S)
return 1
