--- Close breakers whose recovery is over and end panics whose time is over, although no call is made; and remove
-- breakers from the list of those in trouble whose records have expired.
-- states   none
-- keys     upstreams, troubled, features hashes · breaker strings · events stream
--@args     cursor?, scope...
--          scope is an upstream, or upstream/@tenant. With a cursor, from '0' on, also a page of those in trouble
-- returns  the next cursor, '0' at the end · scope, recovering | panic, in how many us that is over …
--@flags allow-oom
--@include keys, now, safe_read, breaker, upstream_settings
local PER_PAGE = 100
local scopes, reports, names, seen, next_cursor = {}, {}, {}, {}, '0'

local function add(scope)
  if not seen[scope] then
    local last = #scopes + 1
    seen[scope], scopes[last], names[last] = true, scope, key('breaker:' .. scope)
    reports[last] = { string.match(scope, '^(.-)/@') or scope }
  end
end

for i = first_scope, #ARGV do
  add(ARGV[i])
end
if cursor ~= '' then
  local page = call('HSCAN', key('troubled'), whole(number_in(cursor, 0)), 'COUNT', PER_PAGE)
  next_cursor = page[1]
  for i = 1, #page[2], 2 do
    add(page[2][i])
  end
end
if #scopes == 0 then
  return { next_cursor }
end

read_upstreams(reports, {}, {})
local found, answer = call('MGET', unpack(names)), { next_cursor }

local function still(scope, what, left_us)
  local last = #answer
  answer[last + 1], answer[last + 2], answer[last + 3] = scope, what, math.ceil(left_us)
end

for i, scope in ipairs(scopes) do
  local name = reports[i][1]
  local settings, panic = upstream_of(name), panic_of(name, now)
  if not found[i] then
    drop_expired(scope)
  elseif settings then
    read_breaker(scope, settings, found[i])
    local left_us = end_recovery(breaker_of(scope), now)
    if left_us > 0 then
      still(scope, 'recovering', left_us)
    end
  end
  if scope == name and panic and panic.until_at > 0 then
    still(name, 'panic', panic.until_at - now)
  end
end
save_breakers(now)
return answer
