--- The queue's settings, obeyed by every worker at its next call.
-- `configure` writes a digest of all settings beside them. Under it they are kept decoded from one
-- call to the next, so a call reads one field; nobody may change the table. An absent number means
-- "no bound". A queue without a digest was never declared, or its data are gone: scripts then answer
-- UNCONFIGURED and the caller declares it again.
--@include key
local KEPT = 1000
local TEXTS = { version = true, limits = true, tenant_limits = true, edited = true, digest = true }
local decoded, number = {}, 0   -- digest -> settings

local function decode(fields)
  local conf = {}
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    conf[name] = TEXTS[name] and value or tonumber(value)
  end
  return conf
end

local function conf_now()
  local digest = call('HGET', key('conf'), 'digest')
  local conf = decoded[digest]
  if not conf and digest then
    if number == KEPT then
      decoded, number = {}, 0
    end
    conf = decode(call('HGETALL', key('conf')))
    decoded[digest], number = conf, number + 1
  end
  return conf or {}
end
