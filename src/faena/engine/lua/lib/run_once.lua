--- A call that may be sent again while its answer is outstanding: what it begins and ends with. Its caller is mostly
-- of this call only, so the record need only outlive the patience of the caller that sends it again.
--@include replay, queue_settings
--@exports begin_once, end_once
local ONCE_TTL_S = 600

--- The settings of the queue; or nil, and what to answer: what the same call was answered before, or a refusal.
-- `epoch` of the shards is compared where the caller says one.
local function begin_once(caller, id_of_call, epoch)
  local conf = conf_now()
  local answered, overtaken = replayed(caller, id_of_call)
  if answered then
    return nil, cmsgpack.unpack(answered)
  elseif overtaken then
    return nil, { 'OVERTAKEN' }
  elseif epoch and (conf.epoch or 0) ~= (tonumber(epoch) or 0) then
    return nil, { 'MOVED' }
  elseif not conf.version then
    return nil, { 'UNCONFIGURED' }
  end
  return conf
end

local function end_once(caller, id_of_call, answer)
  remember(caller, id_of_call, cmsgpack.pack(answer), ONCE_TTL_S)
  return answer
end
