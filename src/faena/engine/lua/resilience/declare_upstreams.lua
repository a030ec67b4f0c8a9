--- Declare upstreams, or look at what is declared.
-- states   none
-- keys     upstreams, features hashes · breaker strings · events stream
--@args     name packed...
-- returns  how many of them were new or have changed
--@flags allow-oom
--@include keys, feature_states
local changed = 0
for i = first_name, #ARGV, 2 do
  if call('HGET', key('upstreams'), ARGV[i]) ~= ARGV[i + 1] then
    call('HSET', key('upstreams'), ARGV[i], ARGV[i + 1])
    changed = changed + 1
    local names = ARGV[i] == '$' and call('HKEYS', key('upstreams')) or { ARGV[i] }
    for _, name in ipairs(names) do
      feature_trouble(name, 'budget')   -- it may be larger now; the next call that finds it used up notes it again
    end
  end
end
return changed
