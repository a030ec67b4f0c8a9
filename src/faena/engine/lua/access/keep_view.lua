--- Keep a saved view of the dashboard, or remove it.
-- states   none
-- keys     views hashes
--@args     whose, name, most, query?
--          whose: a user's, or all · most views of one · query, '' to remove it
-- returns  OK
-- refuses  FULL: there are as many already
--@flags allow-oom
--@include keys, check_arguments
local views, most = key('views:' .. whose), size_of(most, 'most')
if query == '' then
  call('HDEL', views, name)
elseif call('HEXISTS', views, name) == 0 and call('HLEN', views) >= most then
  return 'FULL'
else
  call('HSET', views, name, query)
end
return 'OK'
