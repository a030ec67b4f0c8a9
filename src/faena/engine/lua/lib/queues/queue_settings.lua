--- The queue's settings, obeyed by every worker at its next call.
-- `configure` writes a digest of all settings into `clock`, which the calls that every job needs read in
-- any case. Under it they are kept decoded from one call to the next; the table must not change. An
-- absent number means "no bound". A queue without a digest was never declared, or its data are gone:
-- scripts then answer UNCONFIGURED and the caller declares it again.
-- A shard of a queue has the queue's settings, and obeys its part of what bounds the whole, see
-- divided_limits.lua.
-- A hook of a task, `hook_dead:<task>` or `hook_failed:<task>`, stands in a table of its kind.
-- `cost:<task>`, what jobs of a task are estimated at, is for producers: no script reads it.
--@include keys, safe_read, divided_limits
--@exports conf_of, conf_now
--@state conf = false   -- what this call has read last
local KEPT = 1000
local TEXTS = { version = true, limits = true, tenant_limits = true, costs = true, tenant_costs = true,
  key_limits = true, keyed = true,
  edited = true, digest = true, order = true }
local decoded, number = {}, 0   -- digest -> settings

local NEEDED = { lease_us = true, max_deliveries = true, age_step_us = true, retry_boost = true }

local function decode(fields)
  local conf = {}
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    local kind, task = string.match(name, '^(hook_%l+):(.+)$')
    if task then
      conf[kind] = conf[kind] or {}
      conf[kind][task] = value
    elseif not string.find(name, '^hook_') and not string.find(name, '^cost:') then
      conf[name] = TEXTS[name] and value or count_in(value)
    end
  end
  for name in pairs(NEEDED) do
    conf.version = conf[name] and conf.version   -- without these no job can be placed or leased
  end
  if (conf.shards or 1) > 1 and conf.shard then
    divide_limits(conf)
  end
  return conf
end

--- The settings of a digest, which may be missing.
local function conf_of(digest)
  local conf = decoded[digest]
  if not conf and digest then
    if number == KEPT then
      decoded, number = {}, 0
    end
    conf = decode(call('HGETALL', key('conf')))
    decoded[digest], number = conf, number + 1
  end
  conf = conf or {}
  context.conf = conf
  return conf
end

local function conf_now()
  return conf_of(call('HGET', key('clock'), 'digest'))
end
