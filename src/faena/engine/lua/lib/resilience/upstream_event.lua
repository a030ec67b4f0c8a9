--- What happens to upstreams, budgets and features: an event, and a hint to every process.
-- An event names what it is about, and behind a line end why. A hint is the event, how long it matters in us (0: unknown)
-- and what it is about.
--@include keys, now, feature_states
--@exports tell_upstream, flush_upstream
--@state upstream_told = {}   -- event, what it is about and why, …
--@state upstream_hints = {}
--@state upstream_by = ''     -- the operator who asked for it, if one did
--@ending flush_upstream
local KEPT = 10000
local AT_ONCE = 1000   -- events in one entry

local function tell_upstream(name, what, why, wait_us)
  local told, last = context.upstream_told, #context.upstream_told
  told[last + 1], told[last + 2] = name, why and what .. '\n' .. why or what
  context.upstream_hints[#context.upstream_hints + 1] = name .. ' ' .. whole(math.ceil(wait_us or 0)) .. ' ' .. what
  if not string.find(what, '/@', 1, true) then   -- features do not depend on one tenant's trouble
    touch_features()
  end
end

local function flush_upstream()
  local told = context.upstream_told
  for first = 1, #told, 2 * AT_ONCE do
    local last = math.min(first + 2 * AT_ONCE - 1, #told)
    call('XADD', key('events'), 'MAXLEN', '~', KEPT, '*', 'at', now_us(), 'by', context.upstream_by,
      unpack(told, first, last))
  end
  for _, hint in ipairs(context.upstream_hints) do
    publish('upstreams', hint)
  end
end
