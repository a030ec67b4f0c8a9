--- Declare features and levels: what programs say of them.
-- states   none
-- keys     features, upstreams hashes · breaker strings · events stream
--@args     field packed...
--          f:<feature> or l:<level>
-- returns  how many of them were new or have changed
--@flags allow-oom
--@include keys, feature_states
local changed = 0
for i = first_field, #ARGV, 2 do
  if call('HGET', key('features'), ARGV[i]) ~= ARGV[i + 1] then
    call('HSET', key('features'), ARGV[i], ARGV[i + 1])
    changed = changed + 1
  end
end
if changed > 0 then
  touch_features()
end
return changed
