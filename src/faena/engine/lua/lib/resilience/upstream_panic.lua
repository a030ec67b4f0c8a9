--- Panics: while an upstream is in one, no call to it is permitted. An operator begins it, or a breaker that opens again
-- and again.
--@include keys, upstream_settings, upstream_event
--@exports begin_panic, end_panic, panic_soon, save_panics
--@state due_panics = {}   -- upstream -> why, of panics that begin with this call
local function begin_panic(name, panic, now)
  call('HSET', key('upstreams'), '!' .. name, cmsgpack.pack(panic))
  context.upstream_by = panic.by
  tell_upstream('upstream_panic', name, panic.reason, panic.until_at > 0 and panic.until_at - now or 0)
end

local function end_panic(name, reason, by)
  call('HDEL', key('upstreams'), '!' .. name)
  context.upstream_by = by
  tell_upstream('upstream_panic_ended', name, reason)
end

local function panic_soon(name, reason)
  context.due_panics[name] = reason
end

--- Begin the panics that are due, and end those whose time is over.
local function save_panics(now)
  for name, panic in pairs(context.panics) do
    if not panic_of(name, now) then
      end_panic(name, panic.reason, 'faena')
    end
  end
  for name, reason in pairs(context.due_panics) do
    if not panic_of(name, now) then
      begin_panic(name, { until_at = 0, reason = reason, by = 'faena', at = now }, now)
    end
  end
end
