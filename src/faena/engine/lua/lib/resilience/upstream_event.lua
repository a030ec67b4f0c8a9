--- What happens to upstreams, budgets and features: an event, and a hint to every process.
--@include keys, now
--@exports tell_upstream, flush_upstream
--@state upstream_told = {}   -- event, what it is about, …
--@state upstream_by = ''     -- who asked for it, where somebody did
--@ending flush_upstream
local KEPT = 10000

local function tell_upstream(name, what)
  local told, last = context.upstream_told, #context.upstream_told
  told[last + 1], told[last + 2] = name, what
end

local function flush_upstream()
  local told = context.upstream_told
  if told[1] then
    call('XADD', key('events'), 'MAXLEN', '~', KEPT, '*', 'at', now_us(), 'by', context.upstream_by, unpack(told))
    publish('upstreams', told[2])
  end
end
