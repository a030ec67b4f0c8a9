--- Declare upstreams, or look at what is declared.
-- states   none
-- keys     upstreams hash
--@args     name packed...
-- returns  how many of them were new or have changed
--@flags allow-oom
--@include keys
local changed = 0
for i = first_name, #ARGV, 2 do
  if call('HGET', key('upstreams'), ARGV[i]) ~= ARGV[i + 1] then
    call('HSET', key('upstreams'), ARGV[i], ARGV[i + 1])
    changed = changed + 1
  end
end
return changed
