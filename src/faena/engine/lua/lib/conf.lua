--- The queue's settings, obeyed by every worker at its next call.
-- An absent number means "no bound". A queue without a version was never declared, or its data are
-- gone: scripts then answer UNCONFIGURED and the caller declares it again.
--@include key
local function conf_of(...)
  local names = { 'version', 'limits', ... }
  local values = call('HMGET', key('conf'), unpack(names))
  local conf = { version = values[1], limits = values[2] }
  for i = 3, #names do
    conf[names[i]] = tonumber(values[i])
  end
  return conf
end

--- The settings that finishing and pruning jobs go by, with any others asked for.
local function conf_with_retention(...)
  return conf_of('age_step_us', 'retry_boost', 'events_kept',
    'completed_us', 'completed_count', 'completed_bytes', 'dead_us', 'dead_count', 'dead_bytes',
    'cancelled_us', 'cancelled_count', 'cancelled_bytes', ...)
end
