--- Forget an upstream: the breakers of its tenants, a page at a time, and with the last page its settings, breaker, panic,
-- the windows of its limits and what features know of it. What its calls have cost stays, and so does what is reserved
-- for calls under way, which comes back when they end. A tenant's breaker that is closed has a record that expires.
-- states   none
-- keys     upstreams, troubled, features, forgotten hashes · breaker, claims, call strings · events stream
--@args     caller, id_of_call, upstream, by, cursor
--          upstream $ for the budgets of all upstreams together; cursor of a page of breakers in trouble, from '0' on
-- returns  the next cursor, '0' when all is forgotten
-- refuses  UNDECLARED · OVERTAKEN
--@flags allow-oom
--@include keys, safe_read, replay, upstream_settings, upstream_event, sliding_window, feature_states, spending
local PER_PAGE, ONCE_TTL_S = 100, 600
local answered, overtaken = replayed(caller, id_of_call)
if answered then
  return answered
elseif overtaken then
  return 'OVERTAKEN'
elseif #read_upstreams({ { upstream } }, {}, {}) > 0 then
  return 'UNDECLARED'
end
local settings = upstream_of(upstream)

local function forget_scope(scope, limits)
  local gone = { key('breaker:' .. scope) }
  for _, window in ipairs(type(limits) == 'string' and windows_of(limits, 'u/' .. scope) or {}) do
    gone[#gone + 1] = key(window.name)
  end
  call('UNLINK', unpack(gone))
  call('HDEL', key('troubled'), scope)
end

local page = call('HSCAN', key('troubled'), whole(number_in(cursor, 0)), 'COUNT', PER_PAGE)
for i = 1, #page[2], 2 do
  if string.match(page[2][i], '^(.-)/@') == upstream then
    forget_scope(page[2][i], settings.tenant_limits)
  end
end
if page[1] == '0' then
  forget_scope(upstream, settings.limits)
  for _, name in ipairs(upstream == '$' and call('HKEYS', key('upstreams')) or { upstream }) do
    feature_trouble(name, 'budget')
  end
  call('HDEL', key('upstreams'), upstream, '!' .. upstream)
  keep_currency(upstream, settings.currency)
  context.upstream_by = by
  tell_upstream('upstream_forgotten', upstream)
end
remember(caller, id_of_call, page[1], ONCE_TTL_S)
return page[1]
